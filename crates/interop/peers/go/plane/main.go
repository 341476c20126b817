// A control plane of go-control-plane, for Trunkline's client: aggregated
// streams and streams for each type, state of the world and delta, from one
// snapshot or from linear caches.
//
// PUT /contents takes an encoded DiscoveryResponse with resources of any types,
// and its version: they replace everything. It prints `ready` when it serves.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	clusters "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpoints "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	listeners "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	routes "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	// What resources are made of.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

var served = []string{
	resource.ClusterType, resource.EndpointType, resource.ListenerType, resource.RouteType,
}

// contents is what a cache can be given: everything, in a version.
type contents interface {
	replace(version string, of map[resource.Type][]types.Resource) error
	cache() cache.Cache
}

// everybody is the one node that all nodes are.
type everybody struct{}

func (everybody) ID(*core.Node) string { return "everybody" }

// snapshots has one snapshot. With `ads`, a set that lacks a name that is asked
// for, or has another, is not sent.
type snapshots struct{ in cache.SnapshotCache }

func (s snapshots) replace(version string, of map[resource.Type][]types.Resource) error {
	snapshot, err := cache.NewSnapshot(version, of)
	if err != nil {
		return err
	}
	return s.in.SetSnapshot(context.Background(), "everybody", snapshot)
}

func (s snapshots) cache() cache.Cache { return s.in }

// linear has a linear cache for each type.
type linear struct {
	mux    *cache.MuxCache
	caches map[string]*cache.LinearCache
}

func newLinear() linear {
	l := linear{caches: map[string]*cache.LinearCache{}}
	l.mux = &cache.MuxCache{
		Classify:      func(r *cache.Request) string { return r.GetTypeUrl() },
		ClassifyDelta: func(r *cache.DeltaRequest) string { return r.GetTypeUrl() },
		Caches:        map[string]cache.Cache{},
	}
	for _, url := range served {
		l.caches[url] = cache.NewLinearCache(url)
		l.mux.Caches[url] = l.caches[url]
	}
	return l
}

func (l linear) replace(_ string, of map[resource.Type][]types.Resource) error {
	for _, url := range served {
		byName := map[string]types.Resource{}
		for _, one := range of[url] {
			byName[cache.GetResourceName(one)] = one
		}
		l.caches[url].SetResources(byName)
	}
	return nil
}

func (l linear) cache() cache.Cache { return l.mux }

// take reads what is put.
func take(into contents, body io.Reader) error {
	bytes, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var put discovery.DiscoveryResponse
	if err := proto.Unmarshal(bytes, &put); err != nil {
		return err
	}
	of := map[resource.Type][]types.Resource{}
	for _, any := range put.GetResources() {
		message, err := any.UnmarshalNew()
		if err != nil {
			return err
		}
		one, ok := message.(types.Resource)
		if !ok {
			return fmt.Errorf("%s is no resource", any.GetTypeUrl())
		}
		of[any.GetTypeUrl()] = append(of[any.GetTypeUrl()], one)
	}
	return into.replace(put.GetVersionInfo(), of)
}

func main() {
	listen := flag.String("listen", "", "where clients come")
	control := flag.String("control", "", "where contents are put")
	which := flag.String("cache", "", "snapshot, snapshot-ads or linear")
	flag.Parse()

	var into contents
	switch *which {
	case "snapshot":
		into = snapshots{cache.NewSnapshotCache(false, everybody{}, nil)}
	case "snapshot-ads":
		into = snapshots{cache.NewSnapshotCache(true, everybody{}, nil)}
	case "linear":
		into = newLinear()
	default:
		log.Fatalf("-cache %s: expected snapshot, snapshot-ads or linear", *which)
	}

	var mu sync.Mutex
	http.HandleFunc("PUT /contents", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if err := take(into, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	puts, err := net.Listen("tcp", *control)
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.Serve(puts, nil)) }()

	clients, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	on := grpc.NewServer()
	service := server.NewServer(context.Background(), into.cache(), nil)
	discovery.RegisterAggregatedDiscoveryServiceServer(on, service)
	clusters.RegisterClusterDiscoveryServiceServer(on, service)
	endpoints.RegisterEndpointDiscoveryServiceServer(on, service)
	listeners.RegisterListenerDiscoveryServiceServer(on, service)
	routes.RegisterRouteDiscoveryServiceServer(on, service)
	fmt.Println("ready")
	log.Fatal(on.Serve(clients))
}
