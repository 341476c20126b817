// A server of go-control-plane with the contents of a succession, as the
// control: what a client loses with this one too may be the client's own fault.
//
// It has one snapshot, as its documentation advises for aggregated streams: a
// set that lacks a name that is asked for is not sent. A GET of
// /round?number=3&at=HOST:PORT replaces it. It prints `ready` when it serves.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
)

// everybody is the one node that all nodes are.
type everybody struct{}

func (everybody) ID(*core.Node) string { return "everybody" }

func main() {
	listen := flag.String("listen", "", "where clients come")
	control := flag.String("control", "", "where rounds are asked for")
	step := flag.String("step", "", "swap, move, inline or return")
	number := flag.Int("round", 0, "the first round")
	at := flag.String("at", "", "the endpoint of that round")
	flag.Parse()

	snapshots := cache.NewSnapshotCache(true, everybody{}, nil)
	replace := func(number int, at string) error {
		resources, err := contents(*step, number, at)
		if err != nil {
			return err
		}
		snapshot, err := cache.NewSnapshot(fmt.Sprint(number), resources)
		if err != nil {
			return err
		}
		return snapshots.SetSnapshot(context.Background(), "everybody", snapshot)
	}
	if err := replace(*number, *at); err != nil {
		log.Fatal(err)
	}

	clients, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	rounds, err := net.Listen("tcp", *control)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) {
		number, err := strconv.Atoi(r.FormValue("number"))
		if err == nil {
			err = replace(number, r.FormValue("at"))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	ads := grpc.NewServer()
	service := server.NewServer(context.Background(), snapshots, nil)
	discovery.RegisterAggregatedDiscoveryServiceServer(ads, service)
	go func() { log.Fatal(http.Serve(rounds, nil)) }()
	fmt.Println("ready")
	log.Fatal(ads.Serve(clients))
}
