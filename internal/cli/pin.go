package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"

	"github.com/cnsbench/cnsbench/internal/operator"
)

const (
	// pinMap is the ConfigMap of an installation that has the pin of the results
	// service's certificate, pinKey where in it.
	pinMap, pinKey = "cnsbench-results", "pin"
	// keepPin is how long the operator does without asking for the pin again.
	keepPin   = 10 * time.Second
	pinWithin = 5 * time.Second
)

// publishPin writes the pin of the service's certificate into a ConfigMap.
func (f *serveFlags) publishPin(ctx context.Context, pin string) error {
	namespace := operator.InClusterNamespace()
	if namespace == "" {
		return errors.New("--publish-pin: the service's namespace is not known: it is not in a cluster")
	}
	config, _, err := f.cluster.Load()
	if err != nil {
		return err
	}
	set, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := writePin(ctx, set, namespace, f.publish, pin); err != nil {
		return fmt.Errorf("--publish-pin: %w", err)
	}
	return nil
}

func writePin(ctx context.Context, set clientset.Interface, namespace, name, pin string) error {
	maps := set.CoreV1().ConfigMaps(namespace)
	there, err := maps.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		m := &corev1.ConfigMap{Data: map[string]string{pinKey: pin}}
		m.Name = name
		m.Labels = map[string]string{"app.kubernetes.io/name": "cnsbench", "app.kubernetes.io/component": "results"}
		_, err = maps.Create(ctx, m, metav1.CreateOptions{})
	case err == nil && there.Data[pinKey] != pin:
		there.Data = map[string]string{pinKey: pin}
		_, err = maps.Update(ctx, there, metav1.UpdateOptions{})
	}
	return err
}

func readPin(ctx context.Context, set clientset.Interface, namespace, name string) (string, error) {
	m, err := set.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("pin of the results service's certificate: %w", err)
	}
	return m.Data[pinKey], nil
}

// publishedPin is the pin that lies in a ConfigMap, which a results service that
// was made anew changes. It is safe for concurrent use.
type publishedPin struct {
	set             clientset.Interface
	namespace, name string

	mu   sync.Mutex
	pin  string
	read time.Time
}

func (p *publishedPin) current(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pin != "" && time.Since(p.read) < keepPin {
		return p.pin, nil
	}
	ctx, cancel := context.WithTimeout(ctx, pinWithin)
	defer cancel()
	pin, err := readPin(ctx, p.set, p.namespace, p.name)
	if err == nil {
		p.pin, p.read = pin, time.Now()
	}
	return pin, err
}
