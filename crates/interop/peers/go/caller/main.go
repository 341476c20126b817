// A client of grpc-go that finds its servers by xDS, and calls all the time.
//
// It prints `answer <text>` for an answer that it has not had before, `failed
// <when> <why>` for a call that failed, and when it is asked to stop, `made
// <calls>`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	_ "google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	threads = 3
	// Of each, between the beginnings of two calls.
	pace = 10 * time.Millisecond
	// A call that takes longer hangs.
	patience = 2500 * time.Millisecond
)

type caller struct {
	connection *grpc.ClientConn
	made       atomic.Int64
	mu         sync.Mutex
	seen       map[string]bool
}

func (c *caller) call(within time.Duration, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var answer wrapperspb.StringValue
	err := c.connection.Invoke(ctx, "/test/Call", &emptypb.Empty{}, &answer, options...)
	c.made.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		failed := status.Convert(err)
		why := strings.Join(strings.Fields(failed.Message()), " ")
		when := float64(time.Now().UnixMilli()) / 1000
		fmt.Printf("failed %.3f %s %s\n", when, failed.Code(), why)
	} else if text := answer.GetValue(); !c.seen[text] {
		c.seen[text] = true
		fmt.Println("answer", text)
	}
	return err
}

func main() {
	stop, ended := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer ended()
	credentials := grpc.WithTransportCredentials(insecure.NewCredentials())
	connection, err := grpc.NewClient(os.Args[1], credentials)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	c := &caller{connection: connection, seen: map[string]bool{}}
	if c.call(20*time.Second, grpc.WaitForReady(true)) != nil {
		os.Exit(1)
	}
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			for due := time.NewTicker(pace); stop.Err() == nil; <-due.C {
				_ = c.call(patience)
			}
		})
	}
	all.Wait()
	fmt.Println("made", c.made.Load())
}
