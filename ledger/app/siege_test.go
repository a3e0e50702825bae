package app_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// A siege is two ledger processes that are killed, and what they are to come to.
type siege struct {
	*rig
	binary  string
	random  *rand.Rand
	ledgers [2]*besieged
	ids     []string
	begun   time.Time
	want    map[string]int64 // bytes, by organization
}

// A besieged process may also end by itself, where it starts while its database is away.
type besieged struct {
	*running
	ended chan struct{}
}

func (s *siege) launch() *besieged {
	b := &besieged{s.rig.launch(s.binary), make(chan struct{})}
	go func() {
		_ = b.Wait()
		close(b.ended)
	}()
	return b
}

// begin starts both, each with half of the partitions, and creates organizations.
func (s *siege) begin(organizations int) {
	s.t.Helper()
	s.ledgers[0] = s.launch()
	s.ledgers[0].await(s.t, "partitions=4")
	s.ledgers[1] = s.launch()
	s.ledgers[0].await(s.t, "partitions=2")
	s.ledgers[1].await(s.t, "partitions=2")
	for i := range organizations {
		s.ids = append(s.ids, fmt.Sprint("org", i))
		s.create(s.ids[i], "indie")
	}
	s.awaitAccount(s.ids[len(s.ids)-1])
	s.begun = time.Now()
}

// fell kills a process.
func (s *siege) fell(i int) {
	_ = s.ledgers[i].Process.Kill()
	<-s.ledgers[i].ended
}

// end stops both in order: nobody waits for the sessions of members that died.
func (s *siege) end() {
	for _, b := range s.ledgers {
		_ = b.Process.Signal(syscall.SIGTERM)
		<-b.ended
	}
}

// revive starts what has ended.
func (s *siege) revive() {
	for i := range s.ledgers {
		select {
		case <-s.ledgers[i].ended:
			s.ledgers[i] = s.launch()
		default:
		}
	}
}

// The log of the siege spans some hours, but for the end of a month: they belong to one period. They lie ahead, where nobody seals them before it
// is over.
const siegeHours = 4

func (s *siege) at(stage, stages int) time.Time {
	span := siegeHours * time.Hour
	if s.begun.Add(span).Month() != s.begun.Month() {
		span = 0
	}
	return s.begun.Add(span * time.Duration(stage) / time.Duration(stages))
}

// feed has every organization send a request, and some once more what they have sent.
func (s *siege) feed(stage, stages int) {
	s.t.Helper()
	var accepted []contract.LogsAccepted
	for _, id := range s.ids {
		l := logs(id, int64(1+s.random.IntN(2*1000/(stages+1)))) // about the quota in all
		l.Time = s.at(stage, stages)
		s.want[id] += l.Bytes
		if accepted = append(accepted, l); s.random.IntN(10) == 0 {
			accepted = append(accepted, l)
		}
	}
	s.Accept(accepted...)
}

// check compares what is published with what was sent.
func (s *siege) check() {
	s.t.Helper()
	accounts := s.awaitCounted()
	expected := 0
	for id, want := range s.want {
		if got := accounts[id].Used; got != want {
			s.t.Errorf("%s used %d, want %d", id, got, want)
		}
		expected += factsOf(want, s.config.TierIndieBytes)
	}
	testenv.Eventually(s.t, patience, func() error {
		if found := len(s.facts()); found != expected {
			return fmt.Errorf("%d facts, want %d: %v", found, expected, s.facts())
		}
		return nil
	})
}

// factsOf are how many facts there are about an organization: each threshold that it reached, and that it has nothing left.
func factsOf(used, quota int64) (n int) {
	for _, percent := range ledger.DefaultThresholds() {
		if used*100 >= quota*int64(percent) {
			n++
		}
	}
	if used >= quota {
		n++
	}
	return n
}

// facts are the ids of all facts, each once.
func (s *siege) facts() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := map[string]bool{}
	for _, id := range s.events {
		ids[id] = true
	}
	return ids
}

// compareAnew makes a ledger anew from the same log, and compares what was used and the chains.
func (s *siege) compareAnew() {
	s.t.Helper()
	before := s.chains()
	if links := strings.Count(before, "\n"); links < len(s.ids) {
		s.t.Errorf("there are %d links of %d organizations", links, len(s.ids))
	}
	s.mu.Lock()
	s.counted, s.accounts = nil, map[string]contract.Account{} // it begins where the log does
	s.mu.Unlock()
	s.config.DatabaseURL = httpapi.Secret(pgtest.URL(s.t, postgres.Schema, postgres.Migrations()...))
	_, stop := s.start()
	for id := range s.want {
		s.awaitAccount(id) // what is charged may be counted before its organization is known
	}
	accounts := s.awaitCounted()
	stop()
	for id, want := range s.want {
		if got := accounts[id].Used; got != want {
			s.t.Errorf("anew, %s used %d, want %d", id, got, want)
		}
	}
	s.verify()
	if anew := s.chains(); anew != before {
		s.t.Errorf("made anew, the chains are\n%s\nand were\n%s", anew, before)
	}
}

// chains seals all that was sent, and returns all links and roots.
func (s *siege) chains() (found string) {
	s.t.Helper()
	ctx := s.t.Context()
	pool, err := pg.Open(ctx, s.config.DatabaseURL.Reveal(), postgres.Schema)
	if err != nil {
		s.t.Fatal(err)
	}
	defer pool.Close()
	if err := integrity.Seal(ctx, pool, s.at(1, 1).Add(2*time.Hour)); err != nil {
		s.t.Fatal(err)
	}
	err = pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT concat((SELECT string_agg(concat(organization, ' ', hour, ' ', hash), E'\n' ORDER BY hour, organization) FROM links),
			(SELECT string_agg(concat(hour, ' ', root), E'\n' ORDER BY hour) FROM seals))`).Scan(&found)
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}
