package webhook_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

var first, second = strings.Repeat("5a", 32), strings.Repeat("b7", 32)

func keys(t *testing.T, text string) webhook.Keys {
	t.Helper()
	parsed, err := webhook.ParseKeys(httpapi.Secret(text))
	testenv.Must(t, err)
	return parsed
}

func secret(t *testing.T, from webhook.Keys, of webhook.SecretName) httpapi.Secret {
	t.Helper()
	got, err := from.Secret(of)
	testenv.Must(t, err)
	return got
}

// A secret is always the same, and different for each endpoint,
// rotation and key.
func TestSecretsFollowFromKeys(t *testing.T) {
	both := keys(t, second+", "+first)
	old, current := keys(t, first).Current(), both.Current()
	seen := map[string]bool{}
	for _, name := range []webhook.SecretName{{old, "whk_1", 1}, {old, "whk_1", 2}, {old, "whk_2", 1}, {current, "whk_1", 1}} {
		got := secret(t, both, name)
		if again := secret(t, both, name); again != got || seen[got.Reveal()] || !strings.HasPrefix(got.Reveal(), "whsec_") {
			t.Errorf("%+v: %q, then %q", name, got.Reveal(), again.Reveal())
		}
		seen[got.Reveal()] = true
	}
	if secret(t, both, webhook.SecretName{Key: old, Endpoint: "whk_1", Generation: 1}) !=
		secret(t, keys(t, first), webhook.SecretName{Key: old, Endpoint: "whk_1", Generation: 1}) {
		t.Error("a new key has changed the secrets of the one before")
	}
	if _, err := keys(t, second).Secret(webhook.SecretName{Key: old}); !errors.Is(err, webhook.ErrUnknownKey) {
		t.Errorf("of a key that is gone: %v", err)
	}
}

// An invalid key is refused, and not shown.
func TestParseKeys(t *testing.T) {
	for _, text := range []string{"5eed", first + ",no key at all", first + "00"} {
		if _, err := webhook.ParseKeys(httpapi.Secret(text)); err == nil || strings.Contains(err.Error(), "5eed") || strings.Contains(err.Error(), first) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if none := keys(t, " \n"); none.Current() != "" {
		t.Errorf("no keys: %q", none.Current())
	}
	if shown := fmt.Sprint(keys(t, first).Current()); strings.Contains(first, shown) {
		t.Errorf("the id %q shows the key", shown)
	}
}

// A message is tried for three days, ever more rarely.
func TestPauses(t *testing.T) {
	var longest, shortest, before time.Duration
	for failed := 1; failed < webhook.Attempts; failed++ {
		pause, more := webhook.RetryDelay(failed, 0)
		early, _ := webhook.RetryDelay(failed, 1)
		if !more || pause <= before || early != pause-pause/10 {
			t.Errorf("after %d failures: %v, or %v, %t", failed, pause, early, more)
		}
		longest, shortest, before = longest+pause, shortest+early, pause
	}
	if longest > 72*time.Hour || shortest < 60*time.Hour {
		t.Errorf("it takes %v to %v in all", shortest, longest)
	}
	for _, failed := range []int{0, webhook.Attempts} {
		if pause, more := webhook.RetryDelay(failed, 0); more {
			t.Errorf("after %d failures: %v", failed, pause)
		}
	}
}
