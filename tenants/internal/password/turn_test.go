package password

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
)

func testHasher(t *testing.T) *Hasher {
	t.Helper()
	h, err := NewHasher(ForTests(), rand.Reader)
	testenv.Must(t, err)
	return h
}

// flood makes as many askers as possible, with ever
// new keys, hold and wait for a turn, until ctx ends.
func flood(ctx context.Context, h *Hasher, asker func(string) Asker) {
	for i := range 1000 {
		go func() {
			if _, err := h.turns.take(ctx, asker("flood "+strconv.Itoa(i))); err == nil {
				<-ctx.Done() // hashes forever
			}
		}()
	}
	synctest.Wait()
}

// While many networks guess at once, known askers are
// served at once, and anonymous ones are refused at
// once: no memory or time grows with their number.
func TestStrangersDoNotDelayTheKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHasher(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		flood(ctx, h, Anonymous)
		if load := h.Anonymous(); load.Held > maxSlots || load.Waiting != waitingAnonymous {
			t.Fatalf("strangers hold %d turns, %d wait", load.Held, load.Waiting)
		}
		if _, err := h.Hash(t.Context(), Anonymous("192.0.2.1"), "correct horse"); !errors.Is(err, ErrBusy) {
			t.Errorf("one stranger more: %v", err)
		}
		if err := h.MatchDummy(t.Context(), Known("org_a"), "correct horse"); err != nil {
			t.Errorf("somebody who is known: %v", err)
		}
		synctest.Wait()
		if load := h.Known(); load.Held != 0 || load.Waiting != 0 {
			t.Errorf("the known hold %d turns, %d wait", load.Held, load.Waiting)
		}
		cancel()
		synctest.Wait()
	})
}

// Anonymous askers who guess without a pause leave their slots at
// rest three quarters of the time; known ones wait for no rest.
func TestStrangersRest(t *testing.T) {
	const hash = 33 * time.Millisecond
	for _, line := range []struct {
		name  string
		asker func(string) Asker
		want  time.Duration
	}{{"strangers", Anonymous, (1 + 3 + 1 + 3 + 1) * hash}, {"known", Known, 3 * hash}} {
		synctest.Test(t, func(t *testing.T) {
			lines, begun := newTurns(Slow()), time.Now()
			for range 3 {
				takeAll(t, lines, line.asker, hash)
			}
			if took := time.Since(begun); took < line.want*9/10 || took > line.want*11/10 {
				t.Errorf("%s: three hashes took %s, want about %s", line.name, took, line.want)
			}
		})
	}
}

// takeAll takes each slot of a queue once, for as long as a hash takes.
func takeAll(t *testing.T, lines turns, asker func(string) Asker, hash time.Duration) {
	t.Helper()
	var hashing sync.WaitGroup
	for i := range slots() {
		hashing.Go(func() {
			release, err := lines.take(t.Context(), asker(strconv.Itoa(i)))
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(hash)
			release()
		})
	}
	hashing.Wait()
}

// Members of one organization take no turns from another's.
func TestOneOrganizationLeavesTurnsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHasher(t)
		var releases []func()
		for {
			release, err := h.turns.take(t.Context(), Known("org_"+strconv.Itoa(len(releases))))
			testenv.Must(t, err)
			if releases = append(releases, release); len(releases) == slots() {
				break
			}
		}
		var order []string
		for _, organization := range []string{"noisy", "noisy", "noisy", "quiet"} {
			go func() {
				release, err := h.turns.take(t.Context(), Known(organization))
				if err != nil {
					return
				}
				order = append(order, organization)
				release()
			}()
			synctest.Wait()
		}
		releases[0]()
		synctest.Wait()
		if len(order) != 4 || order[1] != "quiet" {
			t.Errorf("served %v", order)
		}
		for _, release := range releases[1:] {
			release()
		}
	})
}

// Nobody waits longer than waitTimeout; then they are refused.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHasher(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range slots() {
			go func() {
				if _, err := h.turns.take(ctx, Anonymous(strconv.Itoa(i))); err == nil {
					<-ctx.Done()
				}
			}()
		}
		synctest.Wait()
		if _, err := h.Hash(t.Context(), Anonymous("192.0.2.1"), "correct horse"); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
		if waiting := h.Anonymous().Waiting; waiting != 0 {
			t.Errorf("%d wait still", waiting)
		}
		cancel()
		synctest.Wait()
	})
}

// What anonymous and known askers hash at once fits into memory.
func TestMemoryIsBounded(t *testing.T) {
	const budget = 80 << 20 // of 512 MiB for everything
	if most := 2 * maxSlots * int(Slow().Memory) << 10; most > budget {
		t.Errorf("hashing takes up to %d bytes", most)
	}
}

func TestCommon(t *testing.T) {
	for _, common := range []string{"password1234", "Password123456", "P@ssw0rd1234", "iloveyou1234", "qwertyuiopasdf", "123456789012",
		"aaaaaaaaaaaa", "letmeinletmein", "1q2w3e4r5t6y", "passwordpassword", "adalovelace1", "ada@example.com", "acmecorp2026"} {
		if !Common(tenants.Password(common), "ada@example.com", "Ada Lovelace", "Acme Corp") {
			t.Errorf("%q is taken", common)
		}
	}
	for _, good := range []string{"correct horse battery staple", "correct horse battery", "unicorn-lamp-7", "3f8b9c1d2e7a", "Tr0ub4dour&3xyz"} {
		if Common(tenants.Password(good), "ada@example.com", "Ada Lovelace", "Acme Corp") {
			t.Errorf("%q is refused", good)
		}
	}
}
