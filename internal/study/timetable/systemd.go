package timetable

import (
	"fmt"
	"strings"
)

// File is a file by name.
type File struct{ Name, Text string }

// Systemd returns a timer and its service. The service runs in dir, with the given PATH. A second start while it runs
// has no effect: systemd runs a service once at a time.
func Systemd(t Task, dir, path string) []File {
	name := t.ObjectName()
	var times strings.Builder
	for _, s := range t.Slots {
		fmt.Fprintf(&times, "OnCalendar=%s\n", s.Calendar(t.Zone))
	}
	var command []string
	for _, arg := range t.Command {
		command = append(command, quote(strings.ReplaceAll(arg, "$", "$$"))) // $ begins a variable there
	}
	return []File{
		{name + ".service", fmt.Sprintf(`[Unit]
Description=An occasion of the study %s of cnsbench

[Service]
Type=oneshot
WorkingDirectory=%s
Environment=%s
ExecStart=%s
# A study cleans up when it is interrupted, with the drivers that it has started.
KillSignal=SIGINT
KillMode=mixed
TimeoutStartSec=infinity
TimeoutStopSec=10min
`, specifiers(t.Name), specifiers(dir), quote("PATH="+path), strings.Join(command, " "))},
		{name + ".timer", fmt.Sprintf(`[Unit]
Description=Times of the occasions of the study %s of cnsbench

[Timer]
%sPersistent=false

[Install]
WantedBy=timers.target
`, specifiers(t.Name), times.String())},
	}
}

// specifiers escapes the percent signs of a unit file.
func specifiers(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// quote makes one word of a value in a unit file.
func quote(s string) string {
	s = strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s)
	if strings.ContainsAny(s, " '\"\\;") || s == "" {
		return `"` + s + `"`
	}
	return s
}
