package app_test

import (
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv"
)

// Without the ledger a process admits exactly the quota, and a new
// process reads the old one's charges from the log.
func TestQuotaSurvivesRestart(t *testing.T) {
	r := newRig(t)
	one := entry("12345678")
	r.account("org_a", func(a *contract.Account) { a.Quota = int64(5 * len(one)) })
	key := r.key("org_a", "prj_a", nil)
	for _, want := range [][]int{{200, 200, 200}, {200, 200, 429, 429}} {
		p := r.start(nil)
		for i, status := range want {
			if got := p.post(key, bodyOf(one)); got.status != status {
				t.Fatalf("request %d: %d %s, want %d", i, got.status, got.text, status)
			}
		}
		p.stop()
	}
}

// Without a broker nothing is accepted: 500, and the client may retry.
func TestPostWithoutBroker(t *testing.T) {
	broker, err := kafka.Start(kafka.Config{Open: true, Dir: t.TempDir(), Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	stopBroker := sync.OnceFunc(func() { _ = broker.Close() })
	t.Cleanup(stopBroker)
	r := newRigOn(t, []string{broker.Addr()})
	r.account("org_a", nil)
	key := r.key("org_a", "prj_a", nil)
	p := r.start(func(c *app.Config) { c.PublishTimeout = 500 * time.Millisecond })
	if got := p.post(key, bodyOf(entry("before"))); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.text)
	}
	stopBroker()
	if got := p.post(key, bodyOf(entry("while it is down"))); got.status != 500 || got.code() != "unavailable" {
		t.Errorf("%d %s", got.status, got.text)
	}
}

// Without a database entries are accepted and stay in the log until
// they can be stored. Searches answer 500.
func TestPostWithoutDatabase(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	key := r.key("org_a", "prj_a", nil)
	p := r.start(func(c *app.Config) { c.DatabaseURL = "postgres://nobody@127.0.0.1:1/nothing" })
	if got := p.post(key, bodyOf(entry("m"))); got.status != 200 {
		t.Errorf("%d %s", got.status, got.text)
	}
	if got := p.get(key, "/v1/logs"); got.status != 500 || got.code() != "unavailable" {
		t.Errorf("%d %s", got.status, got.text)
	}
}
