package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// Kills: how often, how long the process may work before each, and how long
// the scenario waits for its return. A broker that outlives the process
// reassigns its partitions only after the member's session has timed out.
const (
	shortKills   = 3
	fullKills    = 10 // in make test-faults
	shortestLife = 200 * time.Millisecond
	longestLife  = 1500 * time.Millisecond
	startLimit   = 60 * time.Second
	aimLimit     = 2 * time.Second       // for the last large post to end
	largeLife    = 60 * time.Millisecond // typical duration of a large post
)

// Everything in one process, killed repeatedly while it is posted to, and
// while it is erasing an organization.
// The embedded broker lives in the process and dies with it.
func TestKilled(t *testing.T) {
	program, dataDir := programs.Build(t, "deploy/cmd/weir"), t.TempDir()
	operator := "weirsvc_" + "0123456789abcdef0123456789abcdef0123456789abcdef"
	variables := map[string]string{"WEIR_LISTEN": freeAddress(t), "WEIR_DATA_DIR": dataDir, "WEIR_OPERATOR_TOKEN": operator, "WEIR_LOG_LEVEL": "info"}
	if givenBroker() {
		maps.Copy(variables, backends(t))
	} else {
		variables["WEIR_DATABASE_URL"] = postgrestest.URL(t)
		variables["WEIR_TIER_BOOTSTRAPPER_BYTES"] = fmt.Sprint(quotaBytes)
	}
	_, err := localca.Ensure(filepath.Join(dataDir, "tls"), time.Now())
	must(t, err)
	in := connect(t, "https://"+variables["WEIR_LISTEN"]+"/v1", localca.In(filepath.Join(dataDir, "tls")).CA, operator)

	var running *programs.Process
	start := func() {
		running = programs.Launch(t, program, variables, "run")
		if err := running.AwaitReady(t.Context(), in.api.Ready, startLimit); err != nil {
			t.Errorf("%v\n%s", err, running.Output)
		}
	}
	start()
	defer func() {
		if err := running.Stop(); err != nil {
			t.Errorf("did not stop in order: %v", err)
		}
		if t.Failed() {
			t.Logf("output of the last process:\n%s", running.Output)
		}
	}()
	scenario(t, in, func(ctx context.Context, underway <-chan struct{}) {
		for range testenv.Rounds(t, shortKills, fullKills) {
			life(ctx)
			aim(ctx, underway)
			running.Kill()
			begun := time.Now()
			start()
			t.Logf("back after %s", time.Since(begun).Round(time.Millisecond))
		}
	})
	t.Run("while erasing", func(t *testing.T) { killedWhileErasing(t, in, variables["WEIR_DATABASE_URL"], running, start) })
}

// life lets the process work for a random time.
func life(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(shortestLife + rand.N(longestLife-shortestLife)):
	}
}

// aim requests a large post and returns somewhere within it, unless the
// last one still runs.
func aim(ctx context.Context, underway <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-underway:
		time.Sleep(rand.N(largeLife)) // a random moment, not a wait
	case <-time.After(aimLimit):
	}
}

// givenBroker reports whether the tests use a broker outside of the process.
func givenBroker() bool {
	return os.Getenv("WEIR_TEST_BROKERS") != "" || os.Getenv("WEIR_TEST_BACKEND") == "containers"
}
