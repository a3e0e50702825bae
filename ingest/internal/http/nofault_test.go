package http

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/fairshare"
)

// strictly has the smallest waste delay the next request.
func strictly(in *Intake) *Intake {
	in.Service.Gate.LimitWaste(fairshare.Rate{Burst: 1, PerSecond: 1000})
	return in
}

// checkCharged reports whether the last request was charged as waste,
// by the next one.
func checkCharged(t *testing.T, in *Intake, want bool) {
	t.Helper()
	w := serve(in, newPost(bytes.NewReader(body(1))))
	if charged := w.Header().Get("Retry-After") != "" && bytes.Contains(w.Body.Bytes(), []byte("rate_limited")); charged != want {
		t.Errorf("charged %t, want %t: %d %s", charged, want, w.Code, w.Body)
	}
}

// A repeated request is no waste, however often it comes; the same key
// with another body is.
func TestReplaysAreNotCharged(t *testing.T) {
	in := strictly(newIntake(t, &memoryLog{}, plenty))
	for i := range 3 {
		w := serve(in, newPost(bytes.NewReader(body(100)), "Idempotency-Key", "k"))
		if replayed := w.Header().Get("Idempotency-Replayed") == "true"; w.Code != 200 || replayed != (i > 0) {
			t.Fatalf("request %d: %d %s, replayed %t", i, w.Code, w.Body, replayed)
		}
	}
	checkCharged(t, in, false)
	if w := serve(in, newPost(bytes.NewReader(body(99)), "Idempotency-Key", "k")); w.Code != 400 {
		t.Fatalf("another body: %d %s", w.Code, w.Body)
	}
	checkCharged(t, in, true)
}

// The white space of a repeat is as much waste as that of the first.
func TestReplaysAreChargedForWhiteSpace(t *testing.T) {
	in := strictly(newIntake(t, &memoryLog{}, plenty))
	padded := append(bytes.Repeat([]byte(" "), 3*freeWaste), body(1)...)
	serve(in, newPost(bytes.NewReader(padded), "Idempotency-Key", "k"))
	in.Service.Gate.LimitWaste(fairshare.Rate{Burst: 4 * freeWaste, PerSecond: 1000})
	checkCharged(t, in, false)
	if w := serve(in, newPost(bytes.NewReader(padded), "Idempotency-Key", "k")); w.Header().Get("Idempotency-Replayed") != "true" {
		t.Fatalf("the repetition: %d %s", w.Code, w.Body)
	}
	in.Service.Gate.LimitWaste(fairshare.Rate{Burst: 3 * freeWaste, PerSecond: 1000})
	checkCharged(t, in, true)
}

// A request that waits too long for the first of its key is refused and
// not charged as waste.
func TestWaitingForAnotherIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{hold: make(chan struct{})}
		in := strictly(newIntake(t, log, plenty))
		answers := make(chan *httptest.ResponseRecorder, 2)
		for range cap(answers) {
			go func() { answers <- serve(in, newPost(bytes.NewReader(body(10)), "Idempotency-Key", "k")) }()
		}
		if w := <-answers; w.Code != 429 || !bytes.Contains(w.Body.Bytes(), []byte(codeOverloaded)) {
			t.Errorf("the second: %d %s", w.Code, w.Body)
		}
		close(log.hold)
		if w := <-answers; w.Code != 200 {
			t.Errorf("the first: %d %s", w.Code, w.Body)
		}
		checkCharged(t, in, false)
	})
}

// A request with a contended quota is refused and not charged as waste.
func TestContentionIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{hold: make(chan struct{})}
		size := int64(len(body(10)))
		in := strictly(newIntake(t, log, ingest.Account{Limit: 3 * size / 2, NextLimit: size}))
		first := make(chan int)
		go func() { first <- serve(in, newPost(bytes.NewReader(body(10)))).Code }()
		synctest.Wait()
		if w := serve(in, newPost(bytes.NewReader(body(10)))); w.Code != 429 || !bytes.Contains(w.Body.Bytes(), []byte(codeOverloaded)) {
			t.Errorf("beside another: %d %s", w.Code, w.Body)
		}
		close(log.hold)
		if code := <-first; code != 200 {
			t.Errorf("the first: %d", code)
		}
		checkCharged(t, in, false)
	})
}

// A body without more memory while it is read is refused and not
// charged as waste.
func TestFullMemoryIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{hold: make(chan struct{})}
		in := strictly(newIntake(t, log, plenty))
		in.Bodies = testBodies(64<<10*4*reserveShare*holderShare, 1<<20, in.Service.Clock)
		first := make(chan int, 3)
		for range cap(first) {
			go func() { first <- serve(in, newPost(bytes.NewReader(body(100)))).Code }()
		}
		synctest.Wait()
		grows := fmt.Sprintf(`{"logs":[%s],"x":%q}`, sampleEntry(0), bytes.Repeat([]byte("y"), 300<<10))
		if w := serve(in, newPost(strings.NewReader(grows))); w.Code != 429 || !bytes.Contains(w.Body.Bytes(), []byte(codeOverloaded)) {
			t.Errorf("a body that grows: %d %s", w.Code, w.Body)
		}
		close(log.hold)
		for range cap(first) {
			if code := <-first; code != 200 {
				t.Errorf("one of the first: %d", code)
			}
		}
		checkCharged(t, in, false)
	})
}

// A body that grows large beyond its organization's number of large
// ones is refused and not charged as waste.
func TestTooManyLargeBodiesAreNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{hold: make(chan struct{})}
		in := newIntake(t, log, plenty)
		in.Bodies = NewBodies(BodyLimits{Bytes: 189 << 20, Max: 8 << 20, Requests: 3, LargeBodies: 1}, in.Service.Clock)
		first := make(chan int)
		large := fmt.Sprintf(`{"logs":[%s],"x":%q}`, sampleEntry(0), bytes.Repeat([]byte("y"), 2<<20))
		in.Service.Gate.LimitWaste(fairshare.Rate{Burst: 2<<20 - freeWaste, PerSecond: 1000}) // that of the first alone
		go func() { first <- serve(in, newPost(strings.NewReader(large))).Code }()
		synctest.Wait()
		if w := serve(in, newPost(strings.NewReader(large))); w.Code != 429 || !bytes.Contains(w.Body.Bytes(), []byte(codeOverloaded)) {
			t.Errorf("the second large body: %d %s", w.Code, w.Body)
		}
		close(log.hold)
		if code := <-first; code != 200 {
			t.Errorf("the first: %d", code)
		}
		checkCharged(t, in, false)
	})
}
