// A control plane of go-control-plane, for comparison.
//
// It serves the aggregated stream, incremental and state of the world, and
// takes contents over HTTP: POST /resources with an encoded DiscoveryResponse
// of one type, whose resources are added or replaced together.
//
// It is set up as well as we know: one linear cache for each type behind a
// mux, or one snapshot that all nodes share; no callbacks, no logging, write
// buffers shared between connections, no bound on streams.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	// What the tool's resources are made of.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// contents is what a cache can be given.
type contents interface {
	put(typeURL string, resources map[string]types.Resource) error
	cache() cache.Cache
}

// linear has a linear cache for each type.
type linear struct {
	mux    *cache.MuxCache
	caches map[string]*cache.LinearCache
}

func newLinear() *linear {
	l := &linear{caches: map[string]*cache.LinearCache{}}
	l.mux = &cache.MuxCache{
		Classify:      func(r *cache.Request) string { return r.GetTypeUrl() },
		ClassifyDelta: func(r *cache.DeltaRequest) string { return r.GetTypeUrl() },
		Caches:        map[string]cache.Cache{},
	}
	for _, url := range []string{
		resource.ClusterType, resource.EndpointType, resource.ListenerType, resource.RouteType,
		resource.VirtualHostType,
	} {
		l.caches[url] = cache.NewLinearCache(url)
		l.mux.Caches[url] = l.caches[url]
	}
	return l
}

func (l *linear) put(typeURL string, resources map[string]types.Resource) error {
	into, known := l.caches[typeURL]
	if !known {
		return fmt.Errorf("no cache for %s", typeURL)
	}
	return into.UpdateResources(resources, nil)
}

func (l *linear) cache() cache.Cache { return l.mux }

// everybody is the one node that all nodes are.
type everybody struct{}

func (everybody) ID(*core.Node) string { return "everybody" }

// snapshots has one snapshot, which a change replaces.
type snapshots struct {
	mu      sync.Mutex
	in      cache.SnapshotCache
	all     map[string]map[string]types.Resource
	version int
}

func newSnapshots() *snapshots {
	return &snapshots{
		in:  cache.NewSnapshotCache(false, everybody{}, nil),
		all: map[string]map[string]types.Resource{},
	}
}

func (s *snapshots) put(typeURL string, resources map[string]types.Resource) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.all[typeURL]
	if of == nil {
		of = map[string]types.Resource{}
		s.all[typeURL] = of
	}
	for name, r := range resources {
		of[name] = r
	}
	lists := map[resource.Type][]types.Resource{}
	for url, of := range s.all {
		list := make([]types.Resource, 0, len(of))
		for _, r := range of {
			list = append(list, r)
		}
		lists[url] = list
	}
	s.version++
	snapshot, err := cache.NewSnapshot(fmt.Sprint(s.version), lists)
	if err != nil {
		return err
	}
	return s.in.SetSnapshot(context.Background(), "everybody", snapshot)
}

func (s *snapshots) cache() cache.Cache { return s.in }

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
	resources := make(map[string]types.Resource, len(put.GetResources()))
	for _, any := range put.GetResources() {
		message, err := any.UnmarshalNew()
		if err != nil {
			return err
		}
		r, ok := message.(types.Resource)
		if !ok {
			return fmt.Errorf("%s is no resource", any.GetTypeUrl())
		}
		resources[cache.GetResourceName(r)] = r
	}
	return into.put(put.GetTypeUrl(), resources)
}

// leave ends the program with the one that started it, if that holds a pipe to
// it.
func leave() {
	input, err := os.Stdin.Stat()
	if err != nil || input.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func main() {
	go leave()
	which := flag.String("cache", "linear", "linear or snapshot")
	listen := flag.String("listen", "127.0.0.1:18000", "where xDS is served")
	control := flag.String("control", "127.0.0.1:18001", "where contents are taken")
	flag.Parse()

	var into contents
	switch *which {
	case "linear":
		into = newLinear()
	case "snapshot":
		into = newSnapshots()
	default:
		log.Fatalf("-cache %s: expected linear or snapshot", *which)
	}

	xds, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /resources", func(w http.ResponseWriter, r *http.Request) {
		if err := take(into, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	go func() { log.Fatal(http.ListenAndServe(*control, nil)) }()

	serving := server.NewServer(context.Background(), into.cache(), nil)
	on := grpc.NewServer(grpc.SharedWriteBuffer(true), grpc.MaxConcurrentStreams(1<<30))
	discovery.RegisterAggregatedDiscoveryServiceServer(on, serving)
	log.Fatal(on.Serve(xds))
}
