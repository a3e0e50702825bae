//go:build disk

package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// Limits of what is waited for, on a machine busy with other tests.
const (
	postLimit   = 30 * time.Second // for one answer
	shownOutput = 4000             // last bytes of a process's output
)

// An installation is `weir run` on a data directory, and all that was posted
// to its demo organization. Safe for concurrent use while it runs.
type installation struct {
	t       *testing.T
	dir     string
	given   map[string]string
	running *programs.Process
	env     allinone.DevEnv
	api     *client.Client

	mu      sync.Mutex
	posts   int
	acked   map[string]bool // messages of entries answered with 200
	unknown map[string]bool // of posts without an answer
	refused []*client.Problem
}

// start runs Weir on a data directory, with further variables, and the test
// beside others from then on.
func start(t *testing.T, dir string, given map[string]string) *installation {
	t.Helper()
	t.Parallel()
	return open(t, dir, given)
}

// startAnywhere is start in a directory of the test's, for faults that need no
// embedded broker: where tests are given brokers, those are used.
func startAnywhere(t *testing.T) *installation {
	t.Helper()
	t.Parallel() // before the test waits for its turn on the brokers
	given := map[string]string{}
	if os.Getenv(testenv.EnvBrokers) != "" {
		given["WEIR_BROKERS"] = strings.Join(kafkatest.Brokers(t), ",")
	}
	return open(t, folder(t), given)
}

// folder makes a data directory that PostgreSQL's user can reach, unlike
// t.TempDir for root: so PostgreSQL lies in it too. It goes with the test's
// process, however that ends.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-disk-")
	testenv.Must(t, err)
	testenv.Must(t, os.Chmod(dir, 0o755)) //nolint:gosec // for PostgreSQL's user
	programs.AtEnd(t, cleanUp, dir)
	return dir
}

// cleanUp waits for the end of PostgreSQL first. The folder may be a mount.
const cleanUp = `tries=0
while [ -e "$1/postgres/data" ] && [ "$tries" -lt 100 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
umount -l "$1" 2>/dev/null
rm -rf "$1"`

func open(t *testing.T, dir string, given map[string]string) *installation {
	t.Helper()
	end, err := postgres.Watch(filepath.Join(dir, "postgres"))
	testenv.Must(t, err)
	t.Cleanup(func() { testenv.Must(t, end()) })
	in := &installation{t: t, dir: dir, acked: map[string]bool{}, unknown: map[string]bool{}, given: map[string]string{
		"WEIR_LISTEN": "localhost:0", "WEIR_DATA_DIR": dir, "WEIR_TIER_SCALE_REQUESTS": "1000000",
	}}
	maps.Copy(in.given, given)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last process wrote:\n%s", in.output())
		}
	})
	in.restart()
	return in
}

// restart starts the next process, once the one before it has ended, and
// waits until the demo organization can be used.
func (in *installation) restart() {
	in.t.Helper()
	in.launch()
	testenv.Eventually(in.t, func() (err error) {
		if in.running.HasEnded() {
			in.t.Fatalf("ended instead of serving:\n%s", in.output())
		}
		if !strings.Contains(in.running.Output.String(), "Weir is ready") {
			return errors.New("not ready")
		}
		return in.connect()
	})
}

// launch starts the next process and waits for nothing.
func (in *installation) launch() {
	in.t.Helper()
	in.running = programs.Launch(in.t, programs.Build(in.t, "deploy/cmd/weir"), in.given, "run")
}

// connect reads dev.env and makes a client of it.
func (in *installation) connect() (err error) {
	if in.env, err = allinone.ReadDevEnv(filepath.Join(in.dir, allinone.EnvFile)); err != nil {
		return err
	}
	in.api, err = client.New(in.env.BaseURL, in.env.CAFile, 16)
	return err
}

func (in *installation) output() string {
	text := in.running.Output.String()
	return text[max(0, len(text)-shownOutput):]
}

// stop ends the process in order.
func (in *installation) stop() {
	in.t.Helper()
	if err := in.running.Stop(); err != nil {
		in.t.Fatalf("did not stop in order: %v\n%s", err, in.output())
	}
}

// post sends n entries under a key, and notes what became of them. The error
// is nil for 200.
func (in *installation) post(ctx context.Context, key string, n, size int) error {
	in.mu.Lock()
	in.posts++
	messages, entries := make([]string, n), make([]string, n)
	for i := range n {
		messages[i] = fmt.Sprintf("post %d entry %d %s", in.posts, i, strings.Repeat("x", size))
		entries[i] = fmt.Sprintf(`{"timestamp":%q,"level":"info","message":%q}`, time.Now().UTC().Format(time.RFC3339Nano), messages[i])
	}
	in.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, postLimit)
	defer cancel()
	_, err := in.api.Post(ctx, key, client.Batch{Body: []byte(`{"logs":[` + strings.Join(entries, ",") + `]}`)})
	in.note(messages, err)
	return err
}

func (in *installation) note(messages []string, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	fate := in.unknown
	var problem *client.Problem
	switch {
	case err == nil:
		fate = in.acked
	case errors.As(err, &problem): // 500 leaves open whether it is stored
		in.refused = append(in.refused, problem)
		if problem.Status != http.StatusInternalServerError {
			return
		}
	}
	for _, m := range messages {
		fate[m] = true
	}
}

// counts returns how many entries were acknowledged, and the refused posts.
func (in *installation) counts() (acked int, refused []*client.Problem) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.acked), slices.Clone(in.refused)
}

// load posts from several clients until the returned function is called.
func (in *installation) load(clients, entries, size int) (end func()) {
	ctx, cancel := context.WithCancel(in.t.Context())
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				if in.post(context.WithoutCancel(ctx), in.env.APIKey, entries, size) != nil {
					pause(ctx)
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// pause keeps a refused client from asking without end.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// verify waits until each acknowledged entry is stored once, nothing else is
// but what had no certain answer, and the ledger has charged what is stored.
func (in *installation) verify() {
	in.t.Helper()
	testenv.Eventually(in.t, func() error {
		stored, bytes, err := in.stored()
		if err != nil {
			return err
		}
		if err := in.compare(stored); err != nil {
			return err
		}
		balance, err := in.api.Balance(in.t.Context(), in.env.ServiceToken, in.env.Organization)
		if err != nil {
			return err
		}
		if balance.Consumed != bytes {
			return fmt.Errorf("%d bytes are charged, %d are stored", balance.Consumed, bytes)
		}
		return nil
	})
}

// compare holds what is stored against what was posted.
func (in *installation) compare(stored map[string]int) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	lost := 0
	for m := range in.acked {
		if stored[m] == 0 {
			lost++
		}
	}
	if lost > 0 {
		return fmt.Errorf("%d of %d acknowledged entries are lost", lost, len(in.acked))
	}
	for m, times := range stored {
		if times > 1 || !in.acked[m] && !in.unknown[m] {
			return fmt.Errorf("stored %d times, acknowledged: %t, %.60q", times, in.acked[m], m)
		}
	}
	return nil
}

// stored reads all entries back: how often each message is there, and the
// bytes of all.
func (in *installation) stored() (times map[string]int, bytes int64, err error) {
	times = map[string]int{}
	err = in.api.EachLog(in.t.Context(), in.env.APIKey, client.LogsQuery{Project: in.env.Project}, func(e client.StoredEntry) error {
		var entry struct{ Message string }
		times[""], bytes = 0, bytes+int64(len(e.Entry))
		if err := json.Unmarshal(e.Entry, &entry); err != nil {
			return err
		}
		times[entry.Message]++
		return nil
	})
	delete(times, "")
	return times, bytes, err
}
