//go:build replicas

package e2e

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// A balancer distributes connections over the ready replicas, as a load
// balancer or a Service of Kubernetes does.
type balancer struct {
	listener net.Listener

	mu     sync.Mutex
	ready  []string       // addresses
	served map[string]int // connections since the replica became ready
	open   map[net.Conn]bool
	turn   int
}

func balance(t *testing.T) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	b := &balancer{listener: listener, served: map[string]int{}, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go b.carry(conn)
		}
	}()
	return b
}

func (b *balancer) address() string { return b.listener.Addr().String() }

func (b *balancer) add(replica string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready, b.served[replica] = append(b.ready, replica), 0
}

// remove keeps the replica's connections open: it ends them when it drains.
func (b *balancer) remove(replica string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = slices.DeleteFunc(b.ready, func(other string) bool { return other == replica })
}

// next returns the replicas to try, the preferred one first.
func (b *balancer) next() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return nil
	}
	b.turn++
	first := b.turn % len(b.ready)
	return slices.Concat(b.ready[first:], b.ready[:first])
}

func (b *balancer) carry(client net.Conn) {
	defer client.Close()
	for _, replica := range b.next() {
		server, err := net.Dial("tcp", replica)
		if err != nil {
			continue
		}
		b.mu.Lock()
		b.served[replica]++
		b.open[server] = true
		b.mu.Unlock()
		join(client, server)
		b.mu.Lock()
		delete(b.open, server)
		b.mu.Unlock()
		return
	}
}

// reset closes all open connections.
func (b *balancer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for server := range b.open {
		server.Close()
	}
}

// join copies both ways until either side ends.
func join(client, server net.Conn) {
	go func() {
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	_, _ = io.Copy(client, server)
	server.Close()
}

// idle returns the ready replicas without any connection.
func (b *balancer) idle() (replicas []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, replica := range b.ready {
		if b.served[replica] == 0 {
			replicas = append(replicas, replica)
		}
	}
	return replicas
}
