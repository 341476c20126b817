package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/internal/xds/xdsclient"
	"google.golang.org/grpc/internal/xds/xdsclient/xdsresource"
	"google.golang.org/grpc/internal/xds/xdsdepmgr"
)

// tree is given the configuration of a channel (gRFC A74): the listener, its
// routes, and its clusters with their endpoints, which gRPC's dependency manager
// puts together for the resolver of xds:///. Neither that resolver nor the
// balancers below it are there: the tree is all that is measured.
type tree struct {
	mu     sync.Mutex
	known  *sync.Cond
	newest *xdsresource.XDSConfig
}

func (t *tree) Update(config *xdsresource.XDSConfig) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newest = config
	t.known.Broadcast()
}

func (t *tree) Error(err error) {
	log.Fatalf("the listener or its routes were not accepted: %v", err)
}

// wait returns when a configuration is such.
func (t *tree) wait(is func(*xdsresource.XDSConfig) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.newest == nil || !is(t.newest) {
		t.known.Wait()
	}
}

// watchTree prints `held` when all clusters have endpoints. Each line of its
// input is a cluster and a port: it prints `+` when this is the first port of
// the cluster's endpoints.
func watchTree(client xdsclient.XDSClient, prefix string, count int) {
	tree := &tree{}
	tree.known = sync.NewCond(&tree.mu)
	manager := xdsdepmgr.New(prefix, prefix, client, tree)
	defer manager.Close()

	tree.wait(func(config *xdsresource.XDSConfig) bool {
		resolved := 0
		for name := range config.Clusters {
			if _, ok := firstPort(config, name); ok {
				resolved++
			}
		}
		if resolved != count {
			log.Fatalf("the first configuration has %d of %d clusters", resolved, count)
		}
		return true
	})
	fmt.Println("held")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		name, port, _ := strings.Cut(lines.Text(), " ")
		tree.wait(func(config *xdsresource.XDSConfig) bool {
			first, ok := firstPort(config, name)
			return ok && first == port
		})
		fmt.Println("+")
	}
}

// firstPort is that of a cluster's first endpoint, if it has any.
func firstPort(config *xdsresource.XDSConfig, name string) (string, bool) {
	result := config.Clusters[name]
	if result == nil || result.Err != nil || result.Config.EndpointConfig == nil {
		return "", false
	}
	update := result.Config.EndpointConfig.EDSUpdate
	if update == nil || len(update.Localities) == 0 || len(update.Localities[0].Endpoints) == 0 {
		return "", false
	}
	endpoint := update.Localities[0].Endpoints[0].ResolverEndpoint
	if len(endpoint.Addresses) == 0 {
		return "", false
	}
	address := endpoint.Addresses[0].Addr
	colon := strings.LastIndexByte(address, ':')
	if _, err := strconv.Atoi(address[colon+1:]); err != nil {
		return "", false
	}
	return address[colon+1:], true
}
