package signin

import (
	"testing"
	"time"
)

// A name gets its burst at once, then so many a minute; waiting as long
// as returned always suffices, and names do not affect each other.
func TestAttempts(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	tries := newAttempts(func() time.Time { return now }, 3, 6)
	for i := range 3 {
		if wait := tries.take("ada"); wait != 0 {
			t.Fatalf("attempt %d has to wait %s", i+1, wait)
		}
	}
	for range 5 { // refused attempts take nothing
		if wait := tries.take("ada"); wait != 10*time.Second {
			t.Fatalf("the fourth has to wait %s, want 10s", wait)
		}
	}
	if wait := tries.take("bob"); wait != 0 {
		t.Errorf("another name has to wait %s", wait)
	}
	now = now.Add(10 * time.Second)
	if first, second := tries.take("ada"), tries.take("ada"); first != 0 || second == 0 {
		t.Errorf("after the wait: %s, then %s; want one more attempt", first, second)
	}
}

// People recognize their browsers, though each claims to be several.
func TestClientName(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                                     "Firefox on Linux",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15":                      "Safari on macOS",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0":              "Edge on Windows",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36":                            "Chrome on Android",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.0.0 Mobile/15E148 Safari/604.1": "Chrome on iPhone",
		"curl/8.5.0": "curl",
		"<script>":   "Unknown browser",
		"":           "Unknown browser",
	} {
		if got := clientName(agent); got != want {
			t.Errorf("%s: got %q, want %q", agent, got, want)
		}
	}
}
