package webhook_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/tenants/internal/webhook"
)

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
