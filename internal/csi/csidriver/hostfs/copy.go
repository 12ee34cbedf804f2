package hostfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// CopyTree copies a directory with its files, links, modes, owners and modification times, and syncs the
// target file system. It follows no link. Holes, hard links and extended attributes are not preserved; pipes,
// sockets and devices are errors. Files that vanish meanwhile are skipped.
func CopyTree(from, to string) error {
	// modes and times are set last: creating entries needs write permission and changes the times
	var dirs []func() error
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = copyEntry(path, filepath.Join(to, path[len(from):]), entry, &dirs)
		}
		if path != from && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	for _, finish := range slices.Backward(dirs) {
		err = errors.Join(err, finish())
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return SyncFS(to)
}

func copyEntry(from, to string, entry fs.DirEntry, dirs *[]func() error) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	switch kind := info.Mode().Type(); kind {
	case fs.ModeDir:
		*dirs = append(*dirs, func() error { return copyMeta(info, to) })
		return os.Mkdir(to, 0o700)
	case fs.ModeSymlink:
		link, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return errors.Join(os.Symlink(link, to), copyOwner(info, to))
	case 0:
		if err := copyFile(from, to); err != nil {
			return err
		}
		return copyMeta(info, to)
	default:
		return fmt.Errorf("%s: cannot copy a file of type %s", from, kind)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func copyMeta(info fs.FileInfo, to string) error {
	return errors.Join(copyOwner(info, to), os.Chmod(to, info.Mode()), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// copyOwner copies the owner if this process is root.
func copyOwner(info fs.FileInfo, to string) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(to, int(st.Uid), int(st.Gid))
}

// RemoveTree removes path and everything below it, including read-only directories. A missing path is no
// error.
func RemoveTree(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(p string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(p, 0o700) // errors show in RemoveAll below
		}
		return nil
	})
	return os.RemoveAll(path)
}

// SyncFS commits the file system that holds path.
func SyncFS(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd()))), f.Close())
}
