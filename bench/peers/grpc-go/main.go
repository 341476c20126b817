// The xDS client of gRPC in Go, for comparison: the one behind xds:/// targets,
// with its own decoding and checks (gRFC A27).
//
// That client is not public. Go lets a package use what is internal to another
// whose path begins the same, so the module of this program has a path under
// gRPC's own; no code of gRPC is changed or copied.
//
// It watches as many clusters and endpoints as it is told, by name, and prints
// `held` when it has had each, and `+` for each that it is given after that.
// With routes it watches a listener with everything below it; see tree.go. It
// ends when its input does.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sync"

	"google.golang.org/grpc/internal/xds/bootstrap"
	generic "google.golang.org/grpc/internal/xds/clients/xdsclient"
	"google.golang.org/grpc/internal/xds/xdsclient"
	"google.golang.org/grpc/internal/xds/xdsclient/xdsresource/version"

	"google.golang.org/grpc/experimental/stats"

	// What a program that dials xds:/// has: its balancers and filters are
	// among what the checks look at.
	_ "google.golang.org/grpc/xds"
)

// noMetrics counts nothing, as a channel without a metrics plugin.
type noMetrics struct{ stats.UnimplementedMetricsRecorder }

// tally counts what watchers are given, in the order of one lock.
type tally struct {
	mu      sync.Mutex
	missing int
	out     *bufio.Writer
}

func (t *tally) note(isFirst bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !isFirst:
		fmt.Fprintln(t.out, "+")
	default:
		t.missing--
		if t.missing > 0 {
			return
		}
		fmt.Fprintln(t.out, "held")
	}
	t.out.Flush()
}

// watcher is that of one name. Its calls come one after the other.
type watcher struct {
	tally *tally
	held  generic.ResourceData
}

func (w *watcher) ResourceChanged(data generic.ResourceData, done func()) {
	isFirst := w.held == nil
	w.held = data
	done()
	w.tally.note(isFirst)
}

func (w *watcher) ResourceError(err error, done func()) {
	done()
	log.Fatalf("a resource was not accepted: %v", err)
}

func (w *watcher) AmbientError(err error, done func()) {
	done()
	log.Fatalf("a resource was not accepted, or the server is gone: %v", err)
}

func main() {
	address := flag.String("address", "", "where xDS is served")
	prefix := flag.String("prefix", "", "what every name begins with")
	count := flag.Int("resources", 0, "how many there are of each type")
	routes := flag.Int("routes", 0, "how many routes the listener has; none: there is no listener")
	flag.Parse()

	config, err := bootstrap.NewConfigFromContents([]byte(fmt.Sprintf(`{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}]}],
		"node": {"id": "bench"}
	}`, *address)))
	if err != nil {
		log.Fatal(err)
	}
	client, end, err := xdsclient.NewPool(config).NewClient("bench", noMetrics{})
	if err != nil {
		log.Fatal(err)
	}
	defer end()

	if *routes > 0 {
		watchTree(client, *prefix, *count)
		return
	}
	tally := &tally{missing: 2 * *count, out: bufio.NewWriter(os.Stdout)}
	for _, url := range []string{version.V3ClusterURL, version.V3EndpointsURL} {
		for index := range *count {
			name := fmt.Sprintf("%s-%06d", *prefix, index)
			client.WatchResource(url, name, &watcher{tally: tally})
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}
