package resume_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/allinone/allinonetest"
	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/resume"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// A shortened installation has an embedded broker, whose log loses its end.
type shortened struct {
	dir, database string
	env           allinone.DevEnv
	entries       int
}

// The log loses its last records, which two of three consumers have
// applied; the third has not read what is left. Nothing is accepted until
// weir resume, which names what is lost and whose it was. Then what is
// left is applied once, and so is what is new.
func TestTheEndOfTheLogIsLost(t *testing.T) {
	for name, stopped := range map[string]bool{"after an orderly stop": true, "after a power cut": false} {
		t.Run(name, func(t *testing.T) {
			s := &shortened{dir: t.TempDir(), database: postgrestest.URL(t)}
			t.Setenv("WEIR_DATABASE_URL", s.database)
			log, image := filepath.Join(s.dir, "kafka"), filepath.Join(t.TempDir(), "kafka")
			var release func()
			s.runs(t, "before", func(t *testing.T, api *client.Client) {
				s.post(t, api, 2)
				s.awaitSeen(t, api, 2, 2)
				release = s.holdGrouping(t)
				s.post(t, api, 5)
				s.awaitSeen(t, api, 7, 2)
				testenv.Must(t, os.CopyFS(image, os.DirFS(log)))
			})
			release()
			if !stopped {
				testenv.Must(t, os.RemoveAll(log))
				testenv.Must(t, os.Rename(image, log))
				loseMarks(t, log)
			}
			cutBatches(t, filepath.Join(log, "partitions", contract.TopicLogs+"-0"), 2)
			if stopped {
				s.namesDamage(t)
			} else {
				s.acceptsNothing(t)
				s.resumes(t, false, "fills: partition 0", "Nothing was changed")
			}
			s.resumes(t, true, "fills: partition 0", "lost: grouping.clusters never applied 2 records", s.env.Organization,
				"uncounted: what was written to weir.logs.v1 after")
			s.runs(t, "after", func(t *testing.T, api *client.Client) {
				s.post(t, api, 3)
				s.awaitSeen(t, api, 10, 8)
			})
			s.resumes(t, false, "Every position is in its log")
			s.sound(t)
		})
	}
}

// loseMarks removes what the broker writes without syncing it: up to where
// its logs were synced.
func loseMarks(t *testing.T, log string) {
	t.Helper()
	marks, err := filepath.Glob(filepath.Join(log, "partitions", "*", "synced"))
	testenv.Must(t, err)
	for _, mark := range marks {
		testenv.Must(t, os.Remove(mark))
	}
	if len(marks) == 0 {
		t.Error("no log has a mark")
	}
}

func (s *shortened) open(t *testing.T, log io.Writer) *allinone.App {
	t.Helper()
	modules, err := allinone.ModulesFromEnvironment()
	testenv.Must(t, err)
	modules.Ledger.CheckInterval = 100 * time.Millisecond
	app, err := allinone.New(t.Context(), allinone.Config{
		Listen: "127.0.0.1:0", DataDir: s.dir, DatabaseURL: httpapi.Secret(s.database), LogPartitions: 1, Modules: modules,
	}, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	testenv.Must(t, err)
	return app
}

// runs runs Weir.
func (s *shortened) runs(t *testing.T, what string, during func(*testing.T, *client.Client)) {
	ok := t.Run(what, func(t *testing.T) {
		app := s.open(t, t.Output())
		allinonetest.Run(t, app)
		s.env = app.Env()
		api, err := client.New(s.env.BaseURL, s.env.CAFile, 1)
		testenv.Must(t, err)
		defer api.Close()
		during(t, api)
	})
	if !ok {
		t.FailNow()
	}
}

// acceptsNothing runs Weir on the shortened log until it has said why it
// accepts nothing, and then posts.
func (s *shortened) acceptsNothing(t *testing.T) {
	t.Helper()
	log := &programs.Output{}
	app := s.open(t, log)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- app.Run(ctx) }()
	api, err := client.New(app.Env().BaseURL, app.Env().CAFile, 1)
	testenv.Must(t, err)
	defer api.Close()
	said := false
	testenv.Eventually(t, func() error {
		_, err := api.Post(t.Context(), s.env.APIKey, client.Batch{Body: []byte(`{"logs": [{"timestamp": "2026-11-20T12:00:00Z", "level": "info", "message": "m"}]}`)})
		var problem *client.Problem
		if err == nil || errors.As(err, &problem) && problem.Status != http.StatusInternalServerError {
			t.Fatalf("a post is answered %v", err)
		}
		if !said {
			said = strings.Contains(log.String(), "weir resume")
			return fmt.Errorf("its log doesn't say why: %w", err)
		}
		if problem == nil || !strings.Contains(problem.Detail, "weir resume") {
			return fmt.Errorf("the answer doesn't say why: %w", err)
		}
		return nil
	})
	cancel()
	if err := <-stopped; err != nil {
		t.Errorf("did not stop in order: %v", err)
	}
}

// namesDamage expects that neither Weir nor a look starts on the log, and
// that the look says what to do.
func (s *shortened) namesDamage(t *testing.T) {
	t.Helper()
	_, err := allinone.New(t.Context(), allinone.Config{Listen: "127.0.0.1:0", DataDir: s.dir, DatabaseURL: httpapi.Secret(s.database)}, slog.New(slog.DiscardHandler))
	if !errors.Is(err, kafka.ErrDamaged) {
		t.Errorf("it starts on a shortened log: %v", err)
	}
	err = resume.Run(t.Context(), s.config(false), t.Output())
	if !errors.Is(err, kafka.ErrDamaged) || !strings.Contains(err.Error(), "weir resume --yes") {
		t.Errorf("a look at a shortened log: %v", err)
	}
}

func (s *shortened) config(yes bool) resume.Config {
	return resume.Config{Source: backup.Source{DataDir: s.dir}, LogPartitions: 1, LogRetention: 7 * 24 * time.Hour, Yes: yes}
}

// resumes runs weir resume and expects some words.
func (s *shortened) resumes(t *testing.T, yes bool, words ...string) {
	t.Helper()
	var out bytes.Buffer
	testenv.Must(t, resume.Run(t.Context(), s.config(yes), &out))
	t.Log(out.String())
	for _, word := range words {
		if !strings.Contains(out.String(), word) {
			t.Errorf("nothing of %q", word)
		}
	}
}

// post posts entries, each in a batch of its own, until they are accepted.
func (s *shortened) post(t *testing.T, api *client.Client, entries int) {
	t.Helper()
	for range entries {
		s.entries++
		body := fmt.Sprintf(`{"logs": [{"timestamp": %q, "level": "error", "message": "entry %d", "error": {"type": "E", "message": "e"}}]}`,
			time.Now().UTC().Format(time.RFC3339Nano), s.entries)
		testenv.Eventually(t, func() error {
			_, err := api.Post(t.Context(), s.env.APIKey, client.Batch{Body: []byte(body)})
			return err
		})
	}
}

// awaitSeen waits until so many entries are stored and charged, and so
// many grouped.
func (s *shortened) awaitSeen(t *testing.T, api *client.Client, stored, grouped int) {
	t.Helper()
	testenv.Eventually(t, func() error {
		bytes, logs := int64(0), 0
		err := api.EachLog(t.Context(), s.env.APIKey, client.LogsQuery{Project: s.env.Project}, func(e client.StoredEntry) error {
			bytes, logs = bytes+int64(len(e.Entry)), logs+1
			return nil
		})
		if err != nil {
			return err
		}
		balance, err := api.Balance(t.Context(), s.env.ServiceToken, s.env.Organization)
		if err != nil {
			return err
		}
		groups, err := api.ErrorGroups(t.Context(), s.env.APIKey, s.env.Project)
		if err != nil {
			return err
		}
		occurrences := int64(0)
		for _, group := range groups {
			occurrences += group.Count
		}
		if logs != stored || balance.Consumed != bytes || occurrences != int64(grouped) {
			return fmt.Errorf("%d stored with %d bytes, %d bytes charged, %d grouped; want %d and %d", logs, bytes, balance.Consumed, occurrences, stored, grouped)
		}
		return nil
	})
}

// holdGrouping keeps grouping from applying anything until release.
func (s *shortened) holdGrouping(t *testing.T) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.database)
	testenv.Must(t, err)
	_, err = conn.Exec(t.Context(), `BEGIN; SELECT FROM grouping.bus_positions FOR UPDATE`)
	testenv.Must(t, err)
	return func() { _ = conn.Close(context.Background()) }
}

// sound compares the books with themselves and what is left of the log.
func (s *shortened) sound(t *testing.T) {
	t.Helper()
	t.Run("the books", func(t *testing.T) {
		broker, err := kafka.Start(kafka.Config{Dir: filepath.Join(s.dir, "kafka"), Logger: testenv.Logger(t)})
		testenv.Must(t, err)
		defer broker.Close()
		modules, err := allinone.ModulesFromEnvironment()
		testenv.Must(t, err)
		modules.Ledger.DatabaseURL, modules.Ledger.Brokers = httpapi.Secret(s.database), []string{broker.Addr()}
		modules.Ledger.BrokerAccess.User, modules.Ledger.BrokerAccess.PasswordFile = kafka.User, kafka.PasswordFile(filepath.Join(s.dir, "kafka"))
		modules.Ledger.BrokerAccess.Mechanism = kafka.Mechanism
		violations, err := ledger.Verify(t.Context(), modules.Ledger)
		testenv.Must(t, err)
		for _, violation := range violations {
			t.Errorf("%s: %s", violation.Invariant, violation.Detail)
		}
	})
}

// cutBatches cuts the last batches off the newest file of a partition.
func cutBatches(t *testing.T, partition string, batches int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(partition, "*.dat"))
	testenv.Must(t, err)
	path := slices.Max(files)
	whole, err := os.ReadFile(path)
	testenv.Must(t, err)
	var begins []int64
	for at := 0; at < len(whole); at += 12 + int(binary.BigEndian.Uint32(whole[at+8:])) {
		begins = append(begins, int64(at))
	}
	testenv.Must(t, os.Truncate(path, begins[len(begins)-batches]))
}
