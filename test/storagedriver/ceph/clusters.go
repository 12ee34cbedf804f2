package ceph

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/ceph/go-ceph/rados"
)

// Clusters holds the connections to Ceph, one for each cluster and user.
type Clusters struct {
	conf     string
	monitors map[string]string // of a cluster, by its id

	mu    sync.Mutex
	conns map[connKey]*rados.Conn
}

type connKey struct {
	cluster string
	creds   credentials
}

// NewClusters reads config, a file in the format of ceph-csi's config.json. conf is the ceph.conf of the clients.
func NewClusters(conf, config string) (*Clusters, error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return nil, err
	}
	var clusters []struct {
		ClusterID string   `json:"clusterID"`
		Monitors  []string `json:"monitors"`
	}
	if err := json.Unmarshal(text, &clusters); err != nil {
		return nil, fmt.Errorf("%s: %w", config, err)
	}
	c := &Clusters{conf: conf, monitors: map[string]string{}, conns: map[connKey]*rados.Conn{}}
	for _, one := range clusters {
		c.monitors[one.ClusterID] = "[" + strings.Join(one.Monitors, "],[") + "]"
	}
	return c, nil
}

// known fails for a cluster that the configuration lacks.
func (c *Clusters) known(cluster string) error {
	if c.monitors[cluster] == "" {
		return fmt.Errorf("missing configuration for cluster ID %q", cluster)
	}
	return nil
}

// connect returns the connection of a user, which stays open.
func (c *Clusters) connect(cluster string, creds credentials) (*rados.Conn, error) {
	if err := c.known(cluster); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := connKey{cluster, creds}
	if conn := c.conns[key]; conn != nil {
		return conn, nil
	}
	conn, err := rados.NewConnWithUser(creds.id)
	if err != nil {
		return nil, err
	}
	if err := conn.ReadConfigFile(c.conf); err != nil {
		return nil, fmt.Errorf("%s: %w", c.conf, err)
	}
	for option, value := range map[string]string{"mon_host": c.monitors[cluster], "key": creds.key} {
		if err := conn.SetConfigOption(option, value); err != nil {
			return nil, fmt.Errorf("set %s: %w", option, err)
		}
	}
	if err := conn.Connect(); err != nil {
		return nil, fmt.Errorf("failed to establish the connection as client.%s: %w", creds.id, err)
	}
	c.conns[key] = conn
	return conn, nil
}
