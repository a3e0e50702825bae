//go:build replicas

package e2e

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// lineup are the services in their order of starting and upgrading:
// publishers of state come first, the gateway last.
var lineup = []struct{ name, main string }{
	{"TENANTS", "tenants/cmd/tenants"}, {"LEDGER", "ledger/cmd/ledger"}, {"GROUPING", "grouping/cmd/grouping"},
	{"INGEST", "ingest/cmd/ingest"}, {"GATEWAY", "deploy/cmd/gateway"},
}

const (
	replicasEach = 2
	burst        = 32 // requests
)

// A replicated installation has two replicas of each service, gateway
// included, each pair behind a balancer.
type replicated struct {
	t            *testing.T
	given        map[string]string // variables of every process
	folder       string            // of the certificates
	certificates localca.Files
	services     []*service
}

type service struct {
	*balancer
	name, main string
	settings   map[string]string // its own
	replicas   []*replica
}

type replica struct {
	address string
	metrics string // their address
	running *programs.Process
}

// replicate starts an installation of a release.
func replicate(t *testing.T, of release, settings map[string]string) *replicated {
	t.Helper()
	r := &replicated{t: t, given: maps.Clone(settings), folder: t.TempDir()}
	var err error
	r.certificates, err = localca.Ensure(r.folder, time.Now())
	testenv.Must(t, err)
	maps.Copy(r.given, map[string]string{
		"WEIR_TLS_CERT_FILE": r.certificates.Server, "WEIR_TLS_KEY_FILE": r.certificates.ServerKey, "WEIR_CA_FILE": r.certificates.CA,
		"WEIR_OPERATOR_TOKEN": "weirsvc_" + strings.Repeat("fedcba9876543210", 3), "WEIR_TRUSTED_PROXIES": "127.0.0.1",
	})
	r.prepare(of, "topics")
	for _, s := range lineup {
		r.services = append(r.services, &service{balancer: balance(t), name: s.name, main: s.main})
		r.given["WEIR_"+s.name+"_URL"] = "https://" + r.services[len(r.services)-1].address()
	}
	for range replicasEach {
		for _, s := range r.services {
			r.add(s, of)
		}
	}
	return r
}

// prepare runs commands of weir, as before services are started.
func (r *replicated) prepare(of release, commands ...string) {
	r.t.Helper()
	for _, command := range commands {
		running := programs.Launch(r.t, of.program("deploy/cmd/weir"), r.given, command)
		if err := running.Wait(); err != nil {
			r.t.Fatalf("weir %s: %v\n%s", command, err, running.Output)
		}
	}
}

// add starts a further replica of a service.
func (r *replicated) add(s *service, of release) {
	r.t.Helper()
	s.replicas = append(s.replicas, &replica{address: freeAddress(r.t), metrics: freeAddress(r.t)})
	r.begin(s, s.replicas[len(s.replicas)-1], of)
}

// begin starts a replica and adds it to the balancer once it is ready.
func (r *replicated) begin(s *service, one *replica, of release) {
	r.t.Helper()
	r.start(s, one, of)
	if err := one.running.AwaitReady(r.t.Context(), r.connect(one.address).api.Ready, testenv.Patience); err != nil {
		r.t.Fatalf("%s: %v\n%s", s.main, err, one.running.Output)
	}
	s.add(one.address)
}

// start starts a replica.
func (r *replicated) start(s *service, one *replica, of release) {
	r.t.Helper()
	variables := maps.Clone(r.given)
	maps.Copy(variables, s.settings)
	variables["WEIR_LISTEN"], variables["WEIR_METRICS_LISTEN"] = one.address, one.metrics
	one.running = programs.Launch(r.t, of.program(s.main), variables)
}

// end removes a replica from the balancer and stops it in order.
func (r *replicated) end(s *service, one *replica) {
	r.t.Helper()
	s.remove(one.address)
	if err := one.running.Stop(); err != nil {
		r.t.Fatalf("%s did not stop in order: %v\n%s", s.main, err, one.running.Output)
	}
}

// replace restarts a replica with another release.
func (r *replicated) replace(s *service, number int, by release) {
	r.t.Helper()
	r.end(s, s.replicas[number])
	r.begin(s, s.replicas[number], by)
}

// stop stops every replica, the gateways first.
func (r *replicated) stop() {
	r.t.Helper()
	for _, s := range slices.Backward(r.services) {
		for _, one := range s.replicas {
			r.end(s, one)
		}
	}
}

// connect returns a client of an address. It does not check answers, as
// releases may have different descriptions of the API.
func (r *replicated) connect(address string) installation {
	r.t.Helper()
	api, err := client.New("https://"+address+"/v1", r.certificates.CA, 32)
	testenv.Must(r.t, err)
	r.t.Cleanup(api.Close)
	return installation{api: api, operator: r.given["WEIR_OPERATOR_TOKEN"]}
}

// front returns a client of the gateways.
func (r *replicated) front() installation {
	return r.connect(r.services[len(r.services)-1].address())
}

// awaitMixed waits until every ready replica has a connection.
func (r *replicated) awaitMixed() {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		if err := r.burst(); err != nil {
			return err
		}
		for _, s := range r.services {
			if idle := s.idle(); len(idle) > 0 {
				return fmt.Errorf("nobody has connected to %s at %v", s.main, idle)
			}
		}
		return nil
	})
}

// burst sends more concurrent requests than there are connections, so
// that new ones are made.
func (r *replicated) burst() error {
	var work sync.WaitGroup
	errs := make([]error, burst)
	for i := range errs {
		work.Go(func() {
			in := r.front()
			defer in.api.Close()
			errs[i] = in.api.Ready(r.t.Context())
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

// verify makes the ledger compare its books with its transfers and the log.
func (r *replicated) verify(by release) {
	r.t.Helper()
	variables := maps.Clone(r.given)
	maps.Copy(variables, r.service("LEDGER").settings)
	verifying := programs.Launch(r.t, by.program("ledger/cmd/ledger-verify"), variables)
	if err := verifying.Wait(); err != nil {
		r.t.Errorf("ledger-verify: %v\n%s", err, verifying.Output)
	}
}

func (r *replicated) service(name string) *service {
	return r.services[slices.IndexFunc(r.services, func(s *service) bool { return s.name == name })]
}

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
	testenv.Must(t, err)
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
