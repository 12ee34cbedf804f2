package cli

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/output"
)

// maxCredentials limits a file with credentials.
const maxCredentials = 1 << 20

// credentialReader reads the credentials of outputs and of Prometheus.
type credentialReader struct {
	on *cluster.Cluster // of Secrets; nil: they cannot be read
	// named are the URLs that the command line allows credentials to be sent to; nil: any, since the outputs are not those
	// of a bundle.
	named []string
}

// mayGo refuses to send credentials to a server that the command line does not name: somebody else may have written the
// bundle, and would get them.
func (r credentialReader) mayGo(output, to string) error {
	if r.named == nil || slices.ContainsFunc(r.named, func(url string) bool { return within(to, url) }) {
		return nil
	}
	return fmt.Errorf("output %s of the bundle is sent to %s with this user's credentials: if that is right, add --to %s",
		output, to, shellWord(to))
}

// authorization returns the header Authorization for a server: that of the environment variable, or of its credentials.
func (r credentialReader) authorization(ctx context.Context, server, variable string,
	c *v1alpha1.OutputCredentials) (string, error) {
	if given := os.Getenv(variable); given != "" || c == nil {
		return given, nil
	}
	keys, err := r.keys(ctx, server, c, variable)
	if err != nil {
		return "", err
	}
	header := keys["authorization"]
	if header == "" && keys["username"] != "" {
		header = "Basic " + base64.StdEncoding.EncodeToString([]byte(keys["username"]+":"+keys["password"]))
	}
	if header == "" || strings.ContainsAny(header, "\r\n") {
		return "", fmt.Errorf("%s: credentials: want the keys username and password, or authorization", server)
	}
	return header, nil
}

// account returns the keys of an S3 account for an output: those of the environment, or of its credentials, or the
// usual ones of the environment. Without any, requests are anonymous.
func (r credentialReader) account(ctx context.Context, name string, c *v1alpha1.OutputCredentials) (output.Account,
	error) {
	variable := outputVariable(name, "ACCESSKEY")
	a := output.Account{AccessKey: os.Getenv(variable), SecretKey: os.Getenv(outputVariable(name, "SECRETKEY")),
		SessionToken: os.Getenv(outputVariable(name, "SESSIONTOKEN"))}
	switch {
	case a.AccessKey+a.SecretKey != "":
		return a, nil
	case c == nil:
		return output.Account{AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken: os.Getenv("AWS_SESSION_TOKEN")}, nil
	}
	keys, err := r.keys(ctx, "output "+name, c, variable)
	if err == nil && (keys["accesskey"] == "" || keys["secretkey"] == "") {
		err = fmt.Errorf("output %s: credentials: want the keys accesskey and secretkey", name)
	}
	return output.Account{AccessKey: keys["accesskey"], SecretKey: keys["secretkey"],
		SessionToken: keys["sessiontoken"]}, err
}

// keys reads the credentials for a server; variable is that of the environment which can replace them.
func (r credentialReader) keys(ctx context.Context, server string, c *v1alpha1.OutputCredentials,
	variable string) (keys map[string]string, err error) {
	switch {
	case c.File != "":
		keys, err = credentialsIn(c.File)
	case r.on == nil:
		err = fmt.Errorf("they are in Secret %s of the cluster: set the environment variable %s", c.SecretName, variable)
	default:
		keys, err = r.secret(ctx, c.SecretName)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: credentials: %w", server, err)
	}
	return keys, nil
}

// secret reads a Secret in the namespace of the run.
func (r credentialReader) secret(ctx context.Context, name string) (map[string]string, error) {
	s, err := r.on.Set.CoreV1().Secrets(r.on.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	keys := map[string]string{}
	for key, value := range s.Data {
		keys[key] = strings.TrimSpace(string(value))
	}
	return keys, nil
}

// credentialsIn reads a file with lines KEY=VALUE.
func credentialsIn(path string) (map[string]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	text, err := bounded.ReadPrivate(path, maxCredentials)
	if err != nil {
		return nil, err
	}
	keys, n := map[string]string{}, 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s:%d: want KEY=VALUE", path, n)
		}
		keys[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	return keys, nil
}
