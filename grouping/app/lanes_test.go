package app_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// While grouping is late, what an organization sends
// beyond its share is deferred, so others' errors need
// not wait. Each error still counts once, in its group.
func TestAFloodIsLeftForLater(t *testing.T) {
	r := newRig(t)
	loud, quiet := r.project("loud", "flood"), r.project("quiet", "shop")
	r.config.BatchRecords = 20
	const flood = 400
	var accepted []contract.LogsAccepted
	for i := range flood {
		accepted = append(accepted, logs("loud", "flood", 1, failure(fmt.Sprintf("Error%c", 'A'+i%5), 0)))
	}
	r.Accept(append(accepted, logs("quiet", "shop", 1, failure("ErrorA", 0)))...)
	published := time.Now()
	testenv.Eventually(t, timeout, func() error {
		if time.Since(published) < time.Second {
			return errors.New("grouping would not be late")
		}
		return nil
	})
	process, _ := r.start()
	r.awaitApplied()
	awaitReady(t, process)
	awaitKeys(t, process, loud, quiet)
	if got := counts(t, process, quiet, "shop"); got["ErrorA"] != 1 {
		t.Errorf("counts %v of the quiet one, want 1", got)
	}
	for typ, n := range counts(t, process, loud, "flood") {
		if n != flood/5 {
			t.Errorf("%s counts %d, want %d", typ, n, flood/5)
		}
	}
	testenv.Eventually(t, timeout, func() error {
		if r.number(`SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'bus_deferred' AND schemaname = 'grouping'`) == 0 {
			return errors.New("nothing was left for later")
		}
		return nil
	})
}
