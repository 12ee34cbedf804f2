package results

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
)

const (
	// PinMap is the ConfigMap of an installation with the pin of the results service's certificate.
	PinMap = "cnsbench-results"
	pinKey = "pin"
	// keepPin is how long PublishedPin caches a pin.
	keepPin    = 10 * time.Second
	pinTimeout = 5 * time.Second
)

// WritePin writes the pin of the service's certificate into a ConfigMap.
func WritePin(ctx context.Context, set clientset.Interface, namespace, name, pin string) error {
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

// ReadPin reads the pin from a ConfigMap.
func ReadPin(ctx context.Context, set clientset.Interface, namespace, name string) (string, error) {
	m, err := set.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the pin of the results service's certificate: %w", err)
	}
	return m.Data[pinKey], nil
}

// PublishedPin is the pin in a ConfigMap, which a reinstalled results service changes. It is safe for concurrent use.
type PublishedPin struct {
	Set             clientset.Interface
	Namespace, Name string

	mu   sync.Mutex
	pin  string
	read time.Time
}

// Current returns the pin, read at most some seconds ago.
func (p *PublishedPin) Current(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pin != "" && time.Since(p.read) < keepPin {
		return p.pin, nil
	}
	ctx, cancel := context.WithTimeout(ctx, pinTimeout)
	defer cancel()
	pin, err := ReadPin(ctx, p.Set, p.Namespace, p.Name)
	if err == nil {
		p.pin, p.read = pin, time.Now()
	}
	return pin, err
}
