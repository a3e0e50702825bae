package e2e

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/port"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/testenv/programs"
)

var revocations = flag.Int("revocations", 20, "how many API keys TestRevoked revokes; a fiftieth as often the process that publishes is killed, and the broker is away. From 1000 on it measures: the second is the limit then")

// revokeLimit is the promised second on an idle machine, which only
// a measurement guarantees.
func revokeLimit() time.Duration {
	if *revocations >= 1000 {
		return time.Second
	}
	return quietLimit
}

// Load while keys are revoked: separate organizations, each with a
// client that posts to the replicas in turn.
const (
	loadClients   = 4
	loadPause     = 40 * time.Millisecond // within the rate of the tier
	loadEntries   = 50
	tailLength    = 20 // requests with a key after its revocation was seen, none of which may pass
	longestOutage = 3 * time.Second
)

// Every replica of ingest refuses a revoked API key within a second of
// the revoking request: under load, whichever replica of tenants
// decides, and also just after the publishing process was killed. If
// the broker is away, the second begins with its return.
func TestRevoked(t *testing.T) {
	kafkatest.Parallel(t)
	f := newFleet(t)
	stop := f.load(t)
	t.Run("under load", func(t *testing.T) {
		var took []time.Duration
		for i, key := range f.keys(t, *revocations) {
			took = append(took, f.revoke(t, f.tenants[i%2].api, key))
		}
		f.report(t, took)
	})
	rounds := max(2, *revocations/50)
	t.Run("the process that publishes was killed", func(t *testing.T) {
		var took []time.Duration
		for i, key := range f.keys(t, rounds) {
			holder, other := f.tenants[i%2], f.tenants[1-i%2] // the first one holds the relay, then the one that is left
			holder.running.Kill()
			took = append(took, f.revoke(t, other.api, key))
			holder.start(f.t)
		}
		f.report(t, took)
	})
	t.Run("the broker was away", func(t *testing.T) {
		var took []time.Duration
		for i, key := range f.keys(t, rounds) {
			took = append(took, f.revokeWithoutBroker(t, f.tenants[i%2].api, key))
		}
		f.report(t, took)
	})
	stop()
}

// report shows the times, and fails if one exceeds a second.
func (f *fleet) report(t *testing.T, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[min(len(took)-1, int(share*float64(len(took))))].Round(100 * time.Microsecond)
	}
	t.Logf("%d revocations, in force on %d replicas after: min %s, p50 %s, p99 %s, max %s", len(took), len(f.ingest), at(0), at(0.5), at(0.99), at(1))
	if longest := took[len(took)-1]; longest >= revokeLimit() {
		t.Errorf("a revocation took %s, want less than %s", longest, revokeLimit())
	}
}

// A member is one process of the fleet, with a client of it alone.
type member struct {
	program   string
	variables map[string]string
	running   *programs.Process
	api       *client.Client
}

// A fleet is the path of a revocation: two replicas of tenants, two of
// ingest, and a broker that can be away.
type fleet struct {
	t            *testing.T // all processes end with it
	operator     string
	caFile       string
	brokerConfig kafka.Config
	broker       *kafka.Broker
	tenants      []*member
	ingest       []*member
	organization string
	project      string
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	certificates, err := localca.Ensure(t.TempDir(), time.Now())
	testenv.Must(t, err)
	f := &fleet{t: t, operator: "weirsvc_" + strings.Repeat("0011223344556677", 3), caFile: certificates.CA}
	f.startBroker(t)
	given := map[string]string{
		"WEIR_TLS_CERT_FILE": certificates.Server, "WEIR_TLS_KEY_FILE": certificates.ServerKey, "WEIR_OPERATOR_TOKEN": f.operator,
		"WEIR_DATABASE_URL": postgrestest.URL(t), "WEIR_BROKERS": f.broker.Addr(),
		"WEIR_BROKERS_USER": kafka.User, "WEIR_BROKERS_PASSWORD_FILE": kafka.PasswordFile(f.brokerConfig.Dir),
		"WEIR_READS_PER_MINUTE": "1000000000", "WEIR_ANONYMOUS_PER_MINUTE": "1000000000", // the test polls without pause whether a key works
	}
	testenv.Must(t, programs.Launch(t, programs.Build(t, "deploy/cmd/weir"), given, "topics").Wait())
	tenants, ingest := programs.Build(t, "tenants/cmd/tenants"), programs.Build(t, "ingest/cmd/ingest")
	f.tenants = []*member{f.join(t, tenants, given), f.join(t, tenants, given)}
	f.ingest = []*member{f.join(t, ingest, given), f.join(t, ingest, given)}
	f.join(t, programs.Build(t, "ledger/cmd/ledger"), given) // it publishes what the load's organizations may send
	organization, err := f.tenants[0].api.CreateOrganization(t.Context(), f.operator, "Revoked", "scale")
	testenv.Must(t, err)
	project, err := f.tenants[0].api.CreateProject(t.Context(), f.operator, organization.ID, "Shop")
	testenv.Must(t, err)
	f.organization, f.project = organization.ID, project.ID
	return f
}

// startBroker starts the broker, on the same port each time.
func (f *fleet) startBroker(t *testing.T) {
	t.Helper()
	number, err := port.Free()
	testenv.Must(t, err)
	f.brokerConfig = kafka.Config{Dir: t.TempDir(), Port: number, Logger: slog.New(slog.DiscardHandler)}
	f.broker, err = kafka.Start(f.brokerConfig)
	testenv.Must(t, err)
	t.Cleanup(func() { _ = f.broker.Close() })
}

// join starts a process and waits until it is ready.
func (f *fleet) join(t *testing.T, program string, given map[string]string) *member {
	t.Helper()
	m := &member{program: program, variables: maps.Clone(given)}
	m.variables["WEIR_LISTEN"] = freeAddress(t)
	m.api = connect(t, "https://"+m.variables["WEIR_LISTEN"]+"/v1", f.caFile, f.operator).api
	m.start(t)
	return m
}

func (m *member) start(t *testing.T) {
	t.Helper()
	m.running = programs.Launch(t, m.program, m.variables)
	if err := m.running.AwaitReady(t.Context(), installation{api: m.api}.api.Ready, testenv.Patience); err != nil {
		t.Fatalf("%v\n%s", err, m.running.Output)
	}
}

// keys creates API keys and waits until every replica knows them.
func (f *fleet) keys(t *testing.T, n int) (keys []client.APIKey) {
	t.Helper()
	for i := range n {
		key, err := f.tenants[i%2].api.CreateAPIKey(t.Context(), f.operator, f.project, "prod", fmt.Sprint("key ", i))
		testenv.Must(t, err)
		keys = append(keys, key)
	}
	for _, key := range keys {
		for _, replica := range f.ingest {
			testenv.Eventually(t, func() error {
				if code := ask(t.Context(), replica.api, key.Key); code != http.StatusBadRequest {
					return fmt.Errorf("a new key is answered with %d", code)
				}
				return nil
			})
		}
	}
	return keys
}

// ask uses a key for a request that is refused after the key was
// accepted, and before any database is queried: 400 if the key works,
// 401 if not.
func ask(ctx context.Context, replica *client.Client, key string) int {
	answer, err := replica.Call(ctx, client.Request{Method: http.MethodGet, Path: "/logs?limit=0", Header: map[string]string{"X-Api-Key": key}})
	if err != nil {
		return 0
	}
	return answer.Status
}

// revoke revokes a key and returns the time from the request until the
// last replica refused the key.
func (f *fleet) revoke(t *testing.T, by *client.Client, key client.APIKey) time.Duration {
	t.Helper()
	begun := time.Now()
	seen := f.watch(t, key.Key)
	testenv.Must(t, by.RevokeAPIKey(t.Context(), f.operator, key.ID, "measured"))
	return seen().Sub(begun)
}

// revokeWithoutBroker does so while the broker is away, and returns the
// time from its return.
func (f *fleet) revokeWithoutBroker(t *testing.T, by *client.Client, key client.APIKey) time.Duration {
	t.Helper()
	testenv.Must(t, f.broker.Close())
	testenv.Must(t, by.RevokeAPIKey(t.Context(), f.operator, key.ID, "measured"))
	for _, replica := range f.ingest {
		if status := ask(t.Context(), replica.api, key.Key); status != http.StatusBadRequest {
			t.Errorf("without a broker the key is answered with %d: the revocation went another way", status)
		}
	}
	time.Sleep(rand.N(longestOutage)) // an outage of any length, not a wait
	seen := f.watch(t, key.Key)
	broker, err := kafka.Start(f.brokerConfig)
	testenv.Must(t, err)
	f.broker = broker
	begun := time.Now()
	return max(0, seen().Sub(begun))
}

// watch uses a key on every replica until it is refused. The returned
// function waits for that, and returns the last time.
func (f *fleet) watch(t *testing.T, key string) (seen func() time.Time) {
	t.Helper()
	refused := make([]time.Time, len(f.ingest))
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	var work sync.WaitGroup
	for i, replica := range f.ingest {
		work.Go(func() {
			for ctx.Err() == nil && ask(ctx, replica.api, key) != http.StatusUnauthorized {
				time.Sleep(time.Millisecond) // leaves the replica some room for others
			}
			refused[i] = time.Now()
			for range tailLength {
				if code := ask(ctx, replica.api, key); code != http.StatusUnauthorized {
					t.Errorf("a key that was refused is answered with %d", code)
				}
			}
		})
	}
	return func() time.Time {
		defer cancel()
		work.Wait()
		return slices.MaxFunc(refused, time.Time.Compare)
	}
}

// load posts to both replicas until stop is called, which reports how
// much was accepted.
func (f *fleet) load(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	accepted, begun := make([]int, loadClients), time.Now()
	for i := range loadClients {
		in := installation{api: f.tenants[0].api, operator: f.operator}
		key := in.key(t, fmt.Sprint("load ", i))
		work.Go(func() {
			m := &maker{mark: fmt.Sprint("load ", i)}
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := f.ingest[n%2].api.Post(ctx, key, plainly(body(texts(m.some(loadEntries))...))); err == nil {
					accepted[i] += loadEntries
				}
				time.Sleep(loadPause) // a pace, not a wait
			}
		})
	}
	return func() {
		cancel()
		work.Wait()
		total := 0
		for _, n := range accepted {
			total += n
		}
		t.Logf("meanwhile %d entries were accepted, %.0f a second", total, float64(total)/time.Since(begun).Seconds())
		if total == 0 {
			t.Error("there was no load")
		}
	}
}

// key creates an organization with a project, and returns a key's secret.
func (in installation) key(t *testing.T, name string) string {
	t.Helper()
	organization, err := in.api.CreateOrganization(t.Context(), in.operator, name, "scale")
	testenv.Must(t, err)
	project, err := in.api.CreateProject(t.Context(), in.operator, organization.ID, name)
	testenv.Must(t, err)
	key, err := in.api.CreateAPIKey(t.Context(), in.operator, project.ID, "prod", name)
	testenv.Must(t, err)
	return key.Key
}
