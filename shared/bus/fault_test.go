package bus_test

import (
	"context"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// scene is the target of most faults: messages are published all the
// time, and a consumer applies them.
type scene struct {
	cluster *kafkatest.Cluster
	db      *postgrestest.Database
	topic   string
	tr      *traffic
	lanes   int           // how many organizations the messages belong to; 0: no lanes
	pool    *pgxpool.Pool // not over the network, for the test itself
	random  *rand.Rand
}

// newScene starts traffic and a consumer on one node. The consumer
// reaches its database over a network with faults.
func newScene(t *testing.T, topic string, partitions int) *scene {
	t.Helper()
	return newSceneOf(t, topic, partitions, 0)
}

// newSceneOf is newScene with organizations as lanes: some are always
// over their share, some are not.
func newSceneOf(t *testing.T, topic string, partitions, lanes int) *scene {
	t.Helper()
	s := &scene{cluster: kafkatest.Faulty(t, 1), db: postgrestest.Faulty(t), topic: topic, lanes: lanes, random: chance(t)}
	s.pool = bustest.DatabaseAt(t, s.db.URL)
	bustest.Effects(t, s.pool)
	bustest.Ensure(t, s.brokers(), topic, partitions, nil)
	cfg := s.consumer()
	cfg.Pool = s.open(t)
	bustest.StartConsumer(t, cfg)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: s.brokers(), RequestTimeout: 2 * time.Second, DeliveryTimeout: 2 * time.Minute})
	s.tr = startTrafficOf(p, topic, 8, lanes, 2*time.Millisecond)
	s.tr.more(t, 100)
	return s
}

func (s *scene) brokers() []string { return s.cluster.Brokers() }

func (s *scene) consumer() consumer.Config {
	cfg := bustest.QuickConsumer(s.brokers(), s.topic, s.pool, bustest.WriteEffects)
	cfg.Group, cfg.FetchWait = s.topic, 100*time.Millisecond
	if s.lanes > 0 {
		cfg.Lanes, cfg.MaxRecords = bustest.Strict, 6
	}
	return cfg
}

// open is another pool of the same database: faults of its connections
// do not affect the test's.
func (s *scene) open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(context.Background(), s.db.URL, "bus")
	testenv.Must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// strike repeats a fault, with traffic between, and settles.
func (s *scene) strike(t *testing.T, name string, short, full int, fault func()) row {
	t.Helper()
	n := testenv.Rounds(t, short, full)
	each(t, n, func(int) {
		s.tr.more(t, 20+s.random.IntN(200))
		fault()
	})
	s.tr.more(t, 50)
	s.pool.Reset()
	if s.lanes > 0 {
		defer bustest.WereDeferred(t, s.pool)
	}
	return settle(t, row{fault: name, rounds: n}, s.tr, s.brokers(), s.topic, s.pool)
}

// A faultTest is a part of TestFaults.
type faultTest struct {
	name string
	run  func(*testing.T)
}

// TestFaults makes one fault after the other, as each needs the servers
// alone. It runs beside tests without servers, as it mostly waits.
// `-run 'TestFaults/broker_killed'` runs one fault.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, f := range append(clusterFaults, []faultTest{
		{"broker killed", brokerKilled},
		{"broker paused", brokerPaused},
		{"consumer killed", consumerKilled},
		{"consumer of lanes killed", consumerOfLanesKilled},
		{"consumer stopped", consumerStopped},
		{"members come and go", membersComeAndGo},
		{"members with lanes come and go", membersWithLanesComeAndGo},
		{"network of the broker", brokerNetwork},
		{"network of the database", databaseNetwork},
		{"database restarted", databaseRestarted},
		{"database killed", databaseKilled},
		{"database sessions killed", databaseSessionsKilled},
		{"database sessions killed under lanes", databaseSessionsKilledUnderLanes},
	}...) {
		t.Run(f.name, f.run)
	}
}

// A broker killed repeatedly while messages are sent loses none that
// was confirmed, keeps the order of each key, and has no record twice: it
// knows its producers again, so that a batch whose answer was lost is
// found to be there.
func brokerKilled(t *testing.T) {
	s := newScene(t, "test.broker", 3)
	r := s.strike(t, "broker killed while messages are on their way", 1, 50, func() { s.cluster.Nodes[0].Restart(t) })
	if r.repeated > 0 {
		t.Errorf("%d records are in the log more than once", r.repeated)
	}
}

// Publishers wait for a broker that is paused for longer than requests wait.
func brokerPaused(t *testing.T) {
	s := newScene(t, "test.paused", 3)
	s.strike(t, "broker stopped for longer than requests wait", 1, 10, func() {
		s.cluster.Nodes[0].Pause(t)
		time.Sleep(2500 * time.Millisecond) // the fault is the time
		s.cluster.Nodes[0].Resume(t)
	})
}

// A consumer killed repeatedly between applying and committing loses no
// effect and has none twice.
func consumerKilled(t *testing.T) {
	random := chance(t)
	brokers, topic, url := kafkatest.Faulty(t, 1).Brokers(), "test.killed", postgrestest.URL(t)
	pool := bustest.DatabaseAt(t, url)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 4, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	m := member{Brokers: brokers, Database: url, Topic: topic}
	n := testenv.Rounds(t, 3, 50)
	each(t, n, func(i int) {
		bustest.Publish(t, p, topic, 500*i, 500, 40)
		victim := m.start(t)
		for range 1 + random.IntN(4) {
			victim.await(t)
		}
		victim.kill()
	})
	m.start(t)
	settleEffects(t, row{fault: "consumer killed between applying and committing", rounds: n}, pool, bustest.ReadAll(t, brokers, topic))
}

// Nor does one that defers records: wherever it is killed, each record
// takes effect once, and in the order of its lane.
func consumerOfLanesKilled(t *testing.T) {
	random := chance(t)
	brokers, topic, url := kafkatest.Faulty(t, 1).Brokers(), "test.killed.lanes", postgrestest.URL(t)
	pool := bustest.DatabaseAt(t, url)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 4, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	m := member{Brokers: brokers, Database: url, Topic: topic, Lanes: true}
	n := testenv.Rounds(t, 4, 50)
	each(t, n, func(i int) {
		if _, err := p.PublishContext(context.Background(), topic, bustest.OfLanes(random, 500*i, 500)...); err != nil {
			t.Fatal(err)
		}
		victim := m.start(t)
		for range 1 + random.IntN(20) {
			victim.await(t)
		}
		victim.kill()
	})
	m.start(t)
	settleEffects(t, row{fault: "consumer of lanes killed between applying and committing", rounds: n}, pool, bustest.ReadAll(t, brokers, topic))
	bustest.WereDeferred(t, pool)
}

// A consumer paused within a transaction for longer than its session
// has no effect when it resumes: others have its partitions.
func consumerStopped(t *testing.T) {
	brokers, topic, url := kafkatest.Faulty(t, 1).Brokers(), "test.stopped", postgrestest.URL(t)
	pool := bustest.DatabaseAt(t, url)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 4, nil)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	m := member{Brokers: brokers, Database: url, Topic: topic}
	total, n := 0, testenv.Rounds(t, 1, 5)
	each(t, n, func(int) {
		bustest.Publish(t, p, topic, total, 1000, 40)
		total += 1000
		sleeper := m.start(t)
		sleeper.await(t)
		sleeper.signal(t, syscall.SIGSTOP)
		heir := m.start(t)
		bustest.Applied(t, pool, total)
		sleeper.signal(t, syscall.SIGCONT)
		bustest.Publish(t, p, topic, total, 1000, 40)
		total += 1000
		bustest.Applied(t, pool, total)
		sleeper.kill()
		heir.stop()
	})
	settleEffects(t, row{fault: "consumer stopped for longer than its session", rounds: n}, pool, bustest.ReadAll(t, brokers, topic))
}

// Members that come and go, and partitions added meanwhile, cost only time.
func membersComeAndGo(t *testing.T) {
	newScene(t, "test.storm", 4).storm(t, "members come and go every 300 ms, partitions are added")
}

// So do members that defer records: another one applies what one has deferred.
func membersWithLanesComeAndGo(t *testing.T) {
	newSceneOf(t, "test.storm.lanes", 4, 3).storm(t, "members with lanes come and go every 300 ms, partitions are added")
}

func (s *scene) storm(t *testing.T, name string) {
	partitions, i := int32(4), 0
	var stops []func()
	s.strike(t, name, 6, 100, func() {
		if i++; i%5 == 0 && partitions < 12 {
			partitions++
			bustest.AddPartitions(t, s.brokers(), s.topic, partitions)
		}
		_, stop := bustest.StartConsumer(t, s.consumer())
		stops = append(stops, stop)
		if len(stops) > 2 {
			i := s.random.IntN(len(stops))
			stops[i]()
			stops = append(stops[:i], stops[i+1:]...)
		}
		time.Sleep(300 * time.Millisecond) // the fault is the pace
	})
}

// disturbances are short faults of a network.
var disturbances = []struct {
	name string
	do   func(*fault.Server)
}{
	{"cut", func(s *fault.Server) { s.Cut() }},
	{"black hole", func(s *fault.Server) { s.BlackHole() }},
	{"reset", func(s *fault.Server) { s.Reset() }},
	{"trickle", func(s *fault.Server) { s.Trickle(2000) }},
	{"everything 200 ms late", func(s *fault.Server) { s.Delay(200 * time.Millisecond) }},
}

func (s *scene) disturb(t *testing.T, name string, do func(*fault.Server), server *fault.Server) {
	t.Helper()
	most := 500
	if testenv.Rounds(t, 1, 2) > 1 {
		most = 2500 // longer than a request waits
	}
	s.strike(t, name, 1, 5, func() {
		do(server)
		time.Sleep(time.Duration(200+s.random.IntN(most)) * time.Millisecond) // the fault is the time
		server.Heal(t)
	})
}

// Publishers and consumers survive faults of the network to the broker.
func brokerNetwork(t *testing.T) {
	for _, d := range disturbances {
		t.Run(d.name, func(t *testing.T) {
			s := newScene(t, "test.network."+bustest.TopicName(d.name), 3)
			s.disturb(t, "network of the broker: "+d.name, d.do, s.cluster.Nodes[0])
		})
	}
}

// Each record takes effect once despite faults of the network to the database.
func databaseNetwork(t *testing.T) {
	for _, d := range disturbances {
		t.Run(d.name, func(t *testing.T) {
			s := newScene(t, "test.database."+bustest.TopicName(d.name), 3)
			s.disturb(t, "network of the database: "+d.name, d.do, s.db.Server)
		})
	}
}

// Each record takes effect once if the database is shut down
// immediately, within transactions, and started again.
func databaseRestarted(t *testing.T) {
	s := newScene(t, "test.restarted", 3)
	s.strike(t, "PostgreSQL shut down immediately and started", 3, 50, func() { s.db.Restart(t) })
}

// So it does if the database's processes are killed.
func databaseKilled(t *testing.T) {
	s := newScene(t, "test.crashed", 3)
	s.strike(t, "PostgreSQL killed and started", 1, 20, func() {
		s.db.Kill(t)
		s.db.Start(t)
	})
}

// The database ends all sessions repeatedly: the consumers
// reconnect by themselves.
func databaseSessionsKilled(t *testing.T) {
	newScene(t, "test.sessions", 4).killSessions(t, "all sessions of PostgreSQL ended")
}

// Lanes do not change that.
func databaseSessionsKilledUnderLanes(t *testing.T) {
	newSceneOf(t, "test.sessions.lanes", 4, 3).killSessions(t, "all sessions of PostgreSQL ended, with lanes")
}

func (s *scene) killSessions(t *testing.T, name string) {
	executioner, err := s.pool.Acquire(context.Background())
	testenv.Must(t, err)
	s.strike(t, name, 20, 200, func() {
		if _, err := executioner.Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE pid <> pg_backend_pid() AND datname = current_database()`); err != nil {
			t.Fatal(err)
		}
	})
	executioner.Release()
}
