package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	base "github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/testenv/programs"
	tenants "github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/webhooktest"
)

// A siege: how many kills, among how many organizations, and the
// longest time between two kills.
const (
	shortSiege, fullSiege       = 4, 100 // the latter in make test-faults
	shortBesieged, fullBesieged = 8, 1000
	longestPeace                = 300 * time.Millisecond
	posters                     = 32              // concurrent requests
	quotaOfStage                = 190             // bytes that each stage adds to the quota; it charges fewer
	largestMessage              = 100             // of a stage's post
	untilSealed                 = 3 * time.Hour   // after the siege's start: its hours are over
	shortPace, fullPace         = 1, 5            // stages between two decisions of billing about an organization
	siegeLimit                  = 2 * time.Minute // for pending work to complete after any kill
)

// Two ledgers, the database and the broker are killed with SIGKILL in
// turn, while organizations post to two replicas of ingest until their
// quotas are exhausted, and billing changes plans, grants, budgets,
// charges and suspensions. No byte is lost or doubled; each decision is
// made once; each fact is published, and pushed to the organization's
// webhook, under one id; every invariant holds, by the ledger's own
// verification; and a rebuilt ledger is equal, with the same chains.
func TestBesieged(t *testing.T) {
	kafkatest.Parallel(t)
	kills, organizations, pace := testenv.Rounds(t, shortSiege, fullSiege), shortBesieged, shortPace
	if kills > shortSiege {
		organizations, pace = fullBesieged, fullPace
	}
	s := besiege(t, kills, organizations)
	victims := []func(){
		func() { s.ledgers[0].Kill() }, func() { s.database.Restart(t) }, func() { s.ledgers[1].Kill() }, s.killBroker,
	}
	for stage := range kills {
		s.billing = func(organization int) bool { return (organization+stage)%pace == 0 }
		posted := s.post(s.stage)
		time.Sleep(time.Duration(s.random.Int64N(int64(longestPeace)))) // a random moment of the work, not a wait
		victims[stage%len(victims)]()
		s.revive()
		posted()
	}
	s.awaitUsed()
	s.compareBilled()
	s.post(s.rest)()
	s.awaitUsed()
	s.awaitFacts()
	s.compare()
}

// A siege holds what is killed, what is posted to, and the expected results.
type siege struct {
	t          *testing.T
	began      time.Time
	random     *rand.Rand
	killBroker func()
	database   *postgrestest.Database
	variables  map[string]string
	config     ledger.Config
	quota      int64
	ledgers    [2]*programs.Process // one may end by itself if it starts without its database
	addresses  [2]string            // of the ledgers
	offices    [2]*client.Client    // their clients
	replicas   []*client.Client     // of ingest
	all        []*besieged
	billing    func(organization int) bool // whether it decides about an organization in this stage
	pool       *pgxpool.Pool

	mu     sync.Mutex
	facts  map[string]map[string]string // by organization and id, what each is about
	pushed map[string]map[string]string // the same, as received by webhooks
}

// A besieged organization posts one request at a time, with decisions
// of billing between.
type besieged struct {
	id, project, key string
	random           *rand.Rand
	turn             int // among all
	posts            int
	used             int64 // by posts
	billed
}

// besiegedBroker returns a broker and how to kill it. The broker shared
// by all tests is spared, unless the test is at its full count: to
// start an Apache Kafka for four kills takes longer than these.
func besiegedBroker(t *testing.T, full bool) (brokers []string, kill func()) {
	t.Helper()
	if os.Getenv(testenv.EnvBrokers) != "" && !full {
		return kafkatest.Brokers(t), func() {}
	}
	cluster := kafkatest.Faulty(t, 1)
	return cluster.Brokers(), func() { cluster.Nodes[0].Restart(t) }
}

func besiege(t *testing.T, kills, organizations int) *siege {
	t.Helper()
	brokers, killBroker := besiegedBroker(t, kills > shortSiege)
	s := &siege{
		t: t, began: time.Now(), random: testenv.Random(t, rand.Uint64()), killBroker: killBroker, database: postgrestest.Faulty(t),
		quota: int64(quotaOfStage * (kills + 1)), facts: map[string]map[string]string{}, pushed: map[string]map[string]string{},
	}
	others := contracttest.New(t, "nobody", brokers, 4)
	others.Consume(contract.TopicLedger, s.fact)
	certificates, err := localca.Ensure(t.TempDir(), time.Now())
	testenv.Must(t, err)
	s.config = ledger.Config{
		Config: base.Config{Servers: base.Servers{Brokers: brokers, DatabaseURL: httpapi.Secret(s.database.URL)}}, RulesConfig: ledger.RulesConfig{TierIndieBytes: s.quota},
	}
	s.variables = map[string]string{
		"WEIR_DATABASE_URL": s.database.URL, "WEIR_BROKERS": strings.Join(brokers, ","), "WEIR_TIER_INDIE_BYTES": fmt.Sprint(s.quota),
		"WEIR_TIER_INDIE_REQUESTS": "1000000", "WEIR_TLS_CERT_FILE": certificates.Server, "WEIR_TLS_KEY_FILE": certificates.ServerKey,
		"WEIR_READS_PER_MINUTE": "1000000000", // billing calls without pause
		// Which of its grants a charge uses depends on the order of the log,
		// which only holds within a partition: an organization uses one.
		"WEIR_INGEST_PROJECT_SPREAD": "1",
	}
	for i := range s.addresses {
		s.addresses[i] = freeAddress(t)
		s.offices[i], err = client.New("https://"+s.addresses[i]+"/v1", certificates.CA, posters)
		testenv.Must(t, err)
		t.Cleanup(s.offices[i].Close)
	}
	s.revive()
	s.found(organizations)
	for range 2 {
		s.replicas = append(s.replicas, s.ingest(certificates.CA))
	}
	s.pool, err = pg.Open(t.Context(), s.database.URL, "ledger")
	testenv.Must(t, err)
	t.Cleanup(s.pool.Close)
	return s
}

// found makes tenants create the organizations, each with a key and a webhook.
func (s *siege) found(organizations int) {
	s.t.Helper()
	receiver, authority := webhooktest.Serve(s.t, http.HandlerFunc(s.push))
	people, err := tenants.New(s.t.Context(), tenants.Config{
		Config:        base.Config{Servers: s.config.Servers},
		OperatorToken: pushingOperator, ConsoleOrigin: "https://weir.example", TestConfig: tenants.TestConfig{CheapPasswords: true},
		Webhooks: tenants.WebhookConfig{Keys: httpapi.Secret(strings.Repeat("5a", 32)), Networks: []string{"127.0.0.0/8"}, CAFile: authority},
	}, testenv.Logger(s.t))
	testenv.Must(s.t, err)
	testenv.Run(s.t, people.Run)
	testenv.Eventually(s.t, people.Ready)
	p := &pushing{people: people}
	for i := range organizations {
		b := &besieged{turn: i, random: rand.New(rand.NewPCG(s.random.Uint64(), 0)), billed: newBilled(s.quota)}
		b.id = p.post(s.t, "/v1/organizations", map[string]any{"name": fmt.Sprint("Org ", i), "tier": "indie"}).ID
		b.project = p.post(s.t, "/v1/projects", map[string]any{"organization": b.id, "name": "shop"}).ID
		b.key = p.post(s.t, "/v1/api-keys", map[string]any{"project": b.project, "environment": "prod", "name": "key"}).Key
		p.post(s.t, "/v1/organizations/"+b.id+"/webhooks", map[string]any{
			"url": receiver + "/" + b.id, "events": []string{"quota.threshold_reached", "quota.exhausted", "quota.adjusted", "subscription.tier_changed"},
		})
		s.all = append(s.all, b)
	}
}

// ingest starts a replica, and waits until it admits requests.
func (s *siege) ingest(authority string) *client.Client {
	s.t.Helper()
	address := freeAddress(s.t)
	serve(s.t, services["INGEST"], s.variables, address)
	in := connect(s.t, "https://"+address+"/v1", authority, "")
	last := s.all[len(s.all)-1]
	testenv.Eventually(s.t, func() error { // a request without entries is refused only once it is admitted
		_, err := in.api.Post(s.t.Context(), last.key, plainly(body()))
		return wantProblem(err, http.StatusBadRequest, "empty_batch")
	})
	return in.api
}

// revive starts stopped ledgers.
func (s *siege) revive() {
	s.t.Helper()
	for i, l := range s.ledgers {
		if l == nil || l.HasEnded() {
			variables := maps.Clone(s.variables)
			variables["WEIR_LISTEN"] = s.addresses[i]
			s.ledgers[i] = programs.Launch(s.t, programs.Build(s.t, services["LEDGER"]), variables)
		}
	}
}

const entryOfSiege = `{"timestamp":"2026-11-20T12:00:00Z","level":"info","message":"%s"}`

// emptyEntry is the size of an entry with an empty message.
const emptyEntry = int64(len(entryOfSiege) - len("%s"))

// post makes every organization post, to either replica first, and
// returns a function that waits for all.
func (s *siege) post(post func(b *besieged, to, other *client.Client)) (wait func()) {
	var work sync.WaitGroup
	turns := make(chan struct{}, posters)
	for _, b := range s.all {
		work.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			first := (b.turn + b.posts) % len(s.replicas)
			post(b, s.replicas[first], s.replicas[1-first])
		})
	}
	return work.Wait
}

// stage posts something, and sometimes the same again to the other
// replica: that is one request. Before it, billing decides something.
func (s *siege) stage(b *besieged, to, other *client.Client) {
	if s.billing(b.turn) {
		bills[(b.turn+b.bills)%len(bills)](s, b)
		b.bills++
	}
	size := emptyEntry + int64(b.random.IntN(largestMessage))
	b.posts++
	if !b.deliver(s.t, to, size) {
		return
	}
	b.used += size
	if b.random.IntN(10) == 0 {
		b.deliver(s.t, other, size)
	}
}

// rest posts all that is left, once the replica knows of it.
func (s *siege) rest(b *besieged, to, _ *client.Client) {
	s.await(b, func(ctx context.Context) error { return s.offers(ctx, b, to) })
	b.posts++
	if b.deliver(s.t, to, b.left) {
		b.used += b.left
	}
}

// offers reports whether a replica of ingest knows what is left.
func (s *siege) offers(ctx context.Context, b *besieged, replica *client.Client) error {
	answer, err := replica.Call(ctx, plainly(body()).Request(b.key))
	if limits := answer.Header.Get("RateLimit"); err == nil && !strings.Contains(limits, fmt.Sprintf(`"quota";r=%d;`, b.left)) {
		err = fmt.Errorf("%d bytes are left, and ingest has %q", b.left, limits)
	}
	return err
}

// deliver posts a request of a size, with as many tries as needed.
func (b *besieged) deliver(t *testing.T, to *client.Client, size int64) bool {
	ctx, cancel := context.WithTimeout(t.Context(), siegeLimit)
	defer cancel()
	accepted, err := to.Deliver(ctx, b.key, b.batch(size))
	if err != nil || accepted.BytesUsed != size {
		t.Errorf("%s, after %d bytes: post of %d answered %+v, error %v", b.id, b.used, size, accepted, err)
		return false
	}
	return true
}

// batch returns the next post, of a size.
func (b *besieged) batch(size int64) client.Batch {
	batch := plainly(body(fmt.Sprintf(entryOfSiege, strings.Repeat("m", int(size-emptyEntry)))))
	batch.IdempotencyKey = fmt.Sprint("post ", b.posts)
	return batch
}

// fact notes a record of weir.ledger.v1.
func (s *siege) fact(record bus.Record) {
	fact, _ := contract.NotificationOf(record.Header(contract.HeaderType))
	s.note(s.facts, string(record.Key), record.Header(contract.HeaderID), fact.Name)
}

// push notes a message to a webhook, whose path is the organization.
func (s *siege) push(w http.ResponseWriter, r *http.Request) {
	var payload struct{ Type string }
	if err := json.NewDecoder(r.Body).Decode(&payload); err != nil {
		s.t.Error(err)
	}
	s.note(s.pushed, path.Base(r.URL.Path), r.Header.Get("Webhook-Id"), payload.Type)
	w.WriteHeader(http.StatusNoContent)
}

func (s *siege) note(facts map[string]map[string]string, organization, id, about string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if facts[organization] == nil {
		facts[organization] = map[string]string{}
	}
	facts[organization][id] = about
}

// awaitUsed waits until the books show exactly what was accepted.
func (s *siege) awaitUsed() {
	s.t.Helper()
	testenv.Eventually(s.t, func() error {
		books, err := s.books()
		for _, b := range s.all {
			book := books[b.id]
			if b.left = book.left; err == nil && book.used != b.used+b.charged {
				err = fmt.Errorf("%s used %d by its book, was accepted %d and charged %d", b.id, book.used, b.used, b.charged)
			}
		}
		return err
	})
}

// A besiegedBook sums up an organization's books, in bytes.
type besiegedBook struct{ issued, used, left int64 }

func (s *siege) books() (map[string]besiegedBook, error) {
	books := map[string]besiegedBook{}
	ctx := s.t.Context()
	return books, pg.InTxAsSystem(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT organization, sum(-issuer)::bigint, sum(consumed + overage + overshoot)::bigint, sum(grant_left + credit)::bigint FROM books GROUP BY 1`)
		if err != nil {
			return err
		}
		var organization string
		var book besiegedBook
		_, err = pgx.ForEachRow(rows, []any{&organization, &book.issued, &book.used, &book.left}, func() error {
			books[organization] = book
			return nil
		})
		return err
	})
}

// awaitFacts waits until each fact was published and pushed, each under one id.
func (s *siege) awaitFacts() {
	s.t.Helper()
	testenv.Eventually(s.t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, b := range s.all {
			if !maps.Equal(countFacts(s.facts[b.id]), b.facts) || !maps.Equal(countFacts(s.pushed[b.id]), b.facts) {
				return fmt.Errorf("%s: published are %v, pushed %v, want %v", b.id, s.facts[b.id], s.pushed[b.id], b.facts)
			}
		}
		return nil
	})
}

// countFacts counts facts by subject.
func countFacts(facts map[string]string) map[string]int {
	counts := map[string]int{}
	for _, about := range facts {
		counts[about]++
	}
	return counts
}

// compare seals the hours of the siege, and compares the ledger with
// itself, with the log, and with a rebuilt one.
func (s *siege) compare() {
	s.t.Helper()
	for _, l := range s.ledgers {
		testenv.Must(s.t, l.Stop())
	}
	s.config.Clock = func() time.Time { return time.Now().Add(untilSealed) }
	later, err := ledger.New(s.t.Context(), s.config, testenv.Logger(s.t))
	testenv.Must(s.t, err)
	stop := testenv.Run(s.t, later.Run)
	testenv.Eventually(s.t, func() error { return s.chained() })
	stop()
	s.config.Clock = nil
	violations, err := ledger.Verify(s.t.Context(), s.config)
	testenv.Must(s.t, err)
	for _, violation := range violations {
		s.t.Errorf("%+v", violation)
	}
	made, err := ledger.Rebuild(s.t.Context(), s.config, testenv.Logger(s.t))
	testenv.Must(s.t, err)
	for _, difference := range made.Differences {
		s.t.Error(difference)
	}
	s.t.Logf("recreated: %d things of %d organizations are the same", made.Things, len(s.all))
}

// chained reports whether every organization has a chain.
func (s *siege) chained() error {
	var chains int
	ctx := s.t.Context()
	err := pg.InTxAsSystem(ctx, s.pool, func(tx pgx.Tx) error { return tx.QueryRow(ctx, `SELECT count(*) FROM chains`).Scan(&chains) })
	if err == nil && chains != len(s.all) {
		err = fmt.Errorf("%d chains of %d organizations", chains, len(s.all))
	}
	return err
}
