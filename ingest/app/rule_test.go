package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

const rulesOfA = "/v1/projects/prj_a/ingest-rules"

// rules sets the rules of prj_a.
func (p *replica) rules(key, text string) answer {
	p.t.Helper()
	body, err := json.Marshal(map[string]string{"rules": text})
	testenv.Must(p.t, err)
	return p.send(http.MethodPut, rulesOfA, key, bytes.NewReader(body), "Content-Type", "application/json")
}

// A published log is what came on a topic, so far.
type publishedLog struct {
	mu      sync.Mutex
	records []bus.Record
}

func (l *publishedLog) add(record bus.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, record)
}

// of returns the records with a header's value, without their bytes.
func (l *publishedLog) of(header, value string) (records []bus.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, record := range l.records {
		if record.Header(header) == value {
			records = append(records, record)
		}
	}
	return records
}

// Rules are in force in all replicas about a second after they are set, and at
// a start before anything is accepted. What they drop before the charge costs
// nothing, and what they drop after it is charged and not kept. A request of
// which nothing is left uses its Idempotency-Key.
func TestRulesHold(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	key, other := r.key("org_a", "prj_a", nil), r.key("org_a", "prj_b", nil)
	first, second := r.start(nil), r.start(nil)
	log := &publishedLog{}
	r.Consume(contract.TopicLogs, log.add)

	const text = "drop secret OR waiting\nredact email\nset level error if broken\ndrop charged after the charge"
	if got := first.rules(key, text); got.status != 200 || got.number("version") != 1 {
		t.Fatalf("%d %s", got.status, got.text)
	}
	set := time.Now()
	testenv.Eventually(t, func() error {
		if got := second.post(key, bodyOf(entry("waiting"))); got.number("bytes_used") != 0 {
			return fmt.Errorf("a dropped entry is charged: %s", got.text)
		}
		return nil
	})
	if took := time.Since(set); took > 2*time.Second {
		t.Errorf("rules are in force after %s", took)
	}
	check := func(p *replica) {
		t.Helper()
		mixed := bodyOf(entry("secret"), entry("mail a@example.com"), entry("broken"), entry("charged"))
		want := entry("mail [email]") + "\n" + strings.Replace(entry("broken"), "info", "error", 1) + "\n"
		charge := int64(len(want)-2) + int64(len(entry("charged")))
		got := p.post(key, mixed)
		if got.status != 200 || got.number("processed") != 4 || got.number("bytes_used") != charge {
			t.Fatalf("%d %s, want %d bytes", got.status, got.text, charge)
		}
		testenv.Eventually(t, func() error {
			found := log.of(contract.HeaderBatch, got.header.Get("Weir-Batch-Id"))
			if len(found) == 0 {
				return errors.New("it is not in the log")
			}
			if record := found[0]; string(record.Value) != want || record.Header(contract.HeaderBytes) != fmt.Sprint(charge) || record.Header(contract.HeaderEntries) != "2" {
				t.Errorf("the log has %s bytes, %s entries: %s", record.Header(contract.HeaderBytes), record.Header(contract.HeaderEntries), record.Value)
			}
			return nil
		})
		if got := p.post(other, bodyOf(entry("secret"))); got.number("bytes_used") == 0 {
			t.Errorf("rules hold for another project: %s", got.text)
		}
	}
	check(first)
	check(second)
	first.stop()
	second.stop()
	third := r.start(nil)
	check(third)

	empty := third.post(key, bodyOf(entry("charged")))
	if empty.number("bytes_used") != int64(len(entry("charged"))) {
		t.Errorf("nothing is left, but the charge: %s", empty.text)
	}
	for i := range 2 {
		got := third.post(key, bodyOf(entry("secret")), "Idempotency-Key", "k")
		if replayed := got.header.Get("Idempotency-Replayed") == "true"; got.status != 200 || got.number("processed") != 1 || got.number("bytes_used") != 0 || replayed != (i > 0) {
			t.Errorf("request %d with a key: %d %s %v", i, got.status, got.text, got.header)
		}
	}
	if got := third.post(key, bodyOf(entry("other")), "Idempotency-Key", "k"); got.code() != "idempotency_key_reused" {
		t.Errorf("the key again, with another body: %d %s", got.status, got.text)
	}
	nothing := third.post(key, bodyOf(entry("secret"))).header.Get("Weir-Batch-Id")
	third.post(key, bodyOf(entry("mail [email]"))) // the last
	testenv.Eventually(t, func() error {
		page := third.get(key, "/v1/logs?project=prj_a&q=mail&limit=1000")
		if found := entriesOf(t, page.text); len(found) != 4 || found[0] != entry("mail [email]") {
			return fmt.Errorf("found %s", page.text)
		}
		if record := log.of(contract.HeaderBatch, empty.header.Get("Weir-Batch-Id")); len(record) != 1 || record[0].Header(contract.HeaderEntries) != "0" {
			t.Errorf("the charge of what is not kept is in the log as %v", record)
		}
		if found := log.of(contract.HeaderBatch, nothing); len(found) > 0 {
			t.Errorf("nothing is published, but %v", found)
		}
		if found := entriesOf(t, third.get(key, "/v1/logs?project=prj_a&q=secret+OR+charged").text); len(found) > 0 {
			t.Errorf("dropped entries are kept: %q", found)
		}
		return nil
	})
	pool, err := pg.Open(t.Context(), string(r.config.DatabaseURL), postgres.Schema)
	testenv.Must(t, err)
	defer pool.Close()
	parked := -1
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM bus_parked`).Scan(&parked); err != nil || parked != 0 {
		t.Errorf("%d records are parked: %v", parked, err)
	}
}

// Replicas refuse the entries of a project whose rules they can't read, and
// only these, until they can.
func TestUnreadableRulesRefuse(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	key, other := r.key("org_a", "prj_a", nil), r.key("org_a", "prj_b", nil)
	p := r.start(nil)
	newer := contract.IngestRules{Organization: "org_a", Project: "prj_a", Version: 1, Text: "teleport level:debug"}
	r.PublishEvent(contract.TopicRules, contract.TypeRulesChanged, "prj_a", newer)
	testenv.Eventually(t, func() error {
		if got := p.post(key, bodyOf(entry("m"))); got.status != 500 || got.code() != "unavailable" {
			return fmt.Errorf("%d %s", got.status, got.text)
		}
		return nil
	})
	if got := p.post(other, bodyOf(entry("m"))); got.status != 200 {
		t.Errorf("another project: %d %s", got.status, got.text)
	}
	newer.Version, newer.Text = 2, "drop level:debug"
	r.PublishEvent(contract.TopicRules, contract.TypeRulesChanged, "prj_a", newer)
	testenv.Eventually(t, func() error {
		if got := p.post(key, bodyOf(entry("m"))); got.status != 200 {
			return fmt.Errorf("%d %s", got.status, got.text)
		}
		return nil
	})
}

// Rules that the topic lost are published again, and those without a row go.
func TestRulesHealTheirTopic(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	key := r.key("org_a", "prj_a", nil)
	p := r.start(nil)
	reports := &publishedLog{}
	r.Consume(contract.TopicAlerts, reports.add)
	if got := p.rules(key, "drop secret"); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.text)
	}
	testenv.Eventually(t, func() error {
		if n := len(reports.of(contract.HeaderType, contract.TypeIngestChangeReported)); n != 1 {
			return fmt.Errorf("%d changes are reported for the audit", n)
		}
		return nil
	})
	held := map[string]string{}
	var mu sync.Mutex
	r.Consume(contract.TopicRules, func(record bus.Record) {
		mu.Lock()
		defer mu.Unlock()
		held[string(record.Key)] = string(record.Value)
	})
	has := func(what string, want func() bool) {
		t.Helper()
		testenv.Eventually(t, func() error {
			mu.Lock()
			defer mu.Unlock()
			if !want() {
				return fmt.Errorf("%s: the topic has %v", what, held)
			}
			return nil
		})
	}
	has("set", func() bool { return strings.Contains(held["prj_a"], "drop secret") })
	p.stop()
	r.Publish(contract.TopicRules, "prj_a", nil, nil)
	r.PublishEvent(contract.TopicRules, contract.TypeRulesChanged, "prj_gone", contract.IngestRules{Project: "prj_gone", Version: 1, Text: "drop a"})
	has("lost", func() bool { return held["prj_a"] == "" && held["prj_gone"] != "" })
	r.start(nil)
	has("healed", func() bool { return strings.Contains(held["prj_a"], "drop secret") && held["prj_gone"] == "" })
	if names := slices.Sorted(maps.Keys(held)); !slices.Contains(names, contract.RulesComparedKey) {
		t.Errorf("there is no marker in %v", names)
	}
}
