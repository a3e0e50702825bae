package http

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// every calls do at once and then each period until stop is closed.
func every(period time.Duration, stop <-chan struct{}, do func()) {
	for {
		do()
		select {
		case <-stop:
			return
		case <-time.After(period):
		}
	}
}

// Ordinary bodies of one organization are limited to its share while
// another sends: none is refused, and the other's don't wait.
func TestOrdinaryBodiesAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(t, &memoryLog{}, plenty)
		other := addOrganization(t, in, "org_2")
		in.Bodies = NewBodies(BodyLimits{Bytes: 189 << 20, Max: 16 << 20, Requests: 256, LargeBodies: 8, Throttle: admission.ThrottleLimit{Ordinary: 1 << 20}}, time.Now)
		ordinary := fmt.Sprintf(`{"logs":[%s],"x":%q}`, sampleEntry(0), bytes.Repeat([]byte("y"), 512<<10))
		post := func(body, key string) (took time.Duration) {
			begun := time.Now()
			if w := serve(in, newPost(strings.NewReader(body), "X-Api-Key", key)); w.Code != 200 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			return time.Since(begun)
		}
		for range 8 {
			if took := post(ordinary, secret); took != 0 {
				t.Errorf("alone it took %s", took)
			}
		}
		post(string(body(1)), other)
		begun := time.Now()
		for range 8 {
			post(ordinary, secret)
		}
		if took := time.Since(begun); took < 2*time.Second || took > 4*time.Second {
			t.Errorf("4 MiB at 1 MiB a second, of which the first may come at once, took %s", took)
		}
		begun = time.Now()
		small := string(body(1000))
		for range 4 {
			post(small, secret)
		}
		if took, least := time.Since(begun), time.Duration(3*(len(small)+1000*perEntry))*time.Second>>20; took < least {
			t.Errorf("4,000 entries took %s, want at least %s: what they are beside their text counts", took, least)
		}
		if took := post(string(body(1)), other); took != 0 {
			t.Errorf("another organization's took %s", took)
		}
		checkCharged(t, in, false)
	})
}

// A body in pieces of a byte is charged for its work.
func TestPiecesOfBodiesAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(t, &memoryLog{}, plenty)
		other := addOrganization(t, in, "org_2")
		in.Bodies = NewBodies(BodyLimits{Bytes: 189 << 20, Max: 16 << 20, Requests: 256, LargeBodies: 8, Throttle: admission.ThrottleLimit{Ordinary: 1 << 20}}, time.Now)
		serve(in, newPost(bytes.NewReader(body(1)), "X-Api-Key", other))
		text, begun := body(1), time.Now()
		for range 3 {
			if w := serve(in, newPost(iotest.OneByteReader(bytes.NewReader(text)))); w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		least := time.Duration(2*len(text)*perRead-1<<20) * time.Second >> 20
		if took := time.Since(begun); took < least {
			t.Errorf("three bodies of %d pieces took %s, want at least %s", len(text), took, least)
		}
	})
}

// While another organization sends, one's large bodies are limited to
// its share and number; beyond, they are refused without charge. Small
// ones, and an organization that is alone, are not limited.
func TestLargeBodiesAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(t, &memoryLog{}, plenty)
		other := addOrganization(t, in, "org_2")
		in.Bodies = NewBodies(BodyLimits{Bytes: 189 << 20, Max: 16 << 20, Requests: 256, LargeBodies: 8,
			Throttle: admission.ThrottleLimit{PerSecond: 1 << 20, Bodies: 2}}, time.Now)
		large := fmt.Sprintf(`{"logs":[%s],"x":%q}`, sampleEntry(0), bytes.Repeat([]byte("y"), 7<<20))
		post := func(body, key string) (answer string, took time.Duration) {
			begun := time.Now()
			w := serve(in, newPost(strings.NewReader(body), "X-Api-Key", key))
			return fmt.Sprint(w.Code, " ", w.Body), time.Since(begun)
		}
		if answer, took := post(large, secret); !strings.HasPrefix(answer, "200") || took != 0 {
			t.Errorf("alone it took %s: %s", took, answer)
		}
		stop := make(chan struct{})
		defer close(stop)
		go every(time.Second, stop, func() { post(string(body(1)), other) })
		synctest.Wait() // until it has posted first
		answers := make(chan string, 3)
		for range cap(answers) { // all at once: that it is too much shows when they have begun
			go func() {
				answer, _ := post(large, secret)
				answers <- answer
			}()
		}
		if refused := <-answers; !strings.HasPrefix(refused, "429") || !strings.Contains(refused, codeOverloaded) {
			t.Errorf("one of three at once: %s", refused)
		}
		for _, key := range []string{secret, other} {
			if answer, took := post(string(body(1)), key); !strings.HasPrefix(answer, "200") || took != 0 {
				t.Errorf("a small one took %s: %s", took, answer)
			}
		}
		begun := time.Now()
		for range 2 {
			if answer := <-answers; !strings.HasPrefix(answer, "200") {
				t.Errorf("one of the other two: %s", answer)
			}
		}
		if took := time.Since(begun); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("14 MiB at 1 MiB a second took %s", took)
		}
		checkCharged(t, in, false)
	})
}

// A body whose client leaves while it waits for its organization's
// share is not accepted.
func TestWhoLeavesWaitsForNoShare(t *testing.T) {
	for _, protocol := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", protocol), func(t *testing.T) {
			log := &memoryLog{}
			in := strictly(newIntake(t, log, plenty))
			in.Bodies = NewBodies(BodyLimits{Bytes: 32 << 20, Max: 1 << 20, Requests: 8, LargeBodies: 8, Throttle: admission.ThrottleLimit{Ordinary: 100}}, in.Service.Clock)
			in.Bodies.throttle.Note("org_2")
			in.Bodies.throttle.Note("org_1")
			in.Bodies.throttle.Received("org_1", 590)
			ended := make(chan struct{})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				httpapi.Handle(in.Post)(w, r)
			}))
			server.EnableHTTP2 = protocol == 2
			server.StartTLS()
			defer server.Close()
			ctx, leave := context.WithCancel(t.Context())
			r := newPost(bytes.NewReader(body(1))).WithContext(ctx)
			r.RequestURI = ""
			var err error
			if r.URL, err = url.Parse(server.URL); err != nil {
				t.Fatal(err)
			}
			go func() {
				if response, err := server.Client().Do(r); err == nil {
					_ = response.Body.Close()
				}
			}()
			testenv.Eventually(t, 30*time.Second, func() error {
				if use := in.Bodies.Use(); use.Throttled != 1 {
					return fmt.Errorf("%+v", use)
				}
				return nil
			})
			leave()
			<-ended
			if use := in.Bodies.Use(); use.Throttled != 0 || use.UnderWay != 0 || len(log.accepted) != 0 {
				t.Errorf("%+v, accepted %d", use, len(log.accepted))
			}
			in.Bodies = testBodies(64<<20, 2<<20, in.Service.Clock)
			checkCharged(t, in, false)
		})
	}
}
