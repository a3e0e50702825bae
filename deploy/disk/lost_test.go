//go:build disk

package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/docs/docstest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/port"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// The logs of credentials, facts and accounts lose their ends, as in a power
// cut of a disk that lied, and PostgreSQL keeps what it has: no post with a
// key revoked before is answered with 200, from the first answer on. A new
// key works, a new project is known, quotas hold, and nobody has to act.
func TestControlPlaneHealsTheLog(t *testing.T) {
	for name, topics := range map[string][]string{
		"credentials": {contract.TopicCredentials},
		"accounts":    {contract.TopicAccounts},
		"all":         {contract.TopicCredentials, contract.TopicAccounts, contract.TopicTenants},
	} {
		t.Run(name, func(t *testing.T) {
			free, err := port.Free()
			testenv.Must(t, err)
			in := start(t, folder(t), map[string]string{"WEIR_LISTEN": fmt.Sprintf("localhost:%d", free)})
			revoked, err := in.api.CreateAPIKey(t.Context(), in.env.OperatorToken, in.env.Project, "prod", "to be revoked")
			testenv.Must(t, err)
			in.awaitPost(revoked.Key)
			in.stop()
			lose := in.remember(topics)

			in.restart()
			testenv.Must(t, in.api.RevokeAPIKey(t.Context(), in.env.OperatorToken, revoked.ID, "leaked"))
			created := in.tenant()
			in.awaitAdmitted(created.Key)
			in.verify()
			in.running.Kill()
			lose()

			in.launch()
			end := in.refuses(revoked.Key)
			testenv.Eventually(t, func() error { return in.api.Ready(t.Context()) })
			in.awaitAdmitted(created.Key)
			if _, err := in.api.Logs(t.Context(), created.Key, client.LogsQuery{Project: created.Project}); err != nil {
				t.Errorf("the new project is unknown: %v", err)
			}
			end()
			in.awaitPost(in.env.APIKey)
			in.verify()
			in.stop()
		})
	}
}

// remember keeps the partitions of topics, while nothing runs. lose brings
// them back: what was written since is gone.
func (in *installation) remember(topics []string) (lose func()) {
	in.t.Helper()
	kept := in.t.TempDir()
	move := func(to, from string) {
		for _, topic := range topics {
			place := topic + "-0"
			err := os.RemoveAll(filepath.Join(to, place))
			if err == nil {
				err = os.CopyFS(filepath.Join(to, place), os.DirFS(filepath.Join(from, place)))
			}
			testenv.Must(in.t, err)
		}
	}
	partitions := filepath.Join(in.dir, "kafka", "partitions")
	move(kept, partitions)
	return func() { move(partitions, kept) }
}

// tenant creates an organization with a project and a key.
func (in *installation) tenant() client.APIKey {
	in.t.Helper()
	organization, err := in.api.CreateOrganization(in.t.Context(), in.env.OperatorToken, "New", "scale")
	testenv.Must(in.t, err)
	project, err := in.api.CreateProject(in.t.Context(), in.env.OperatorToken, organization.ID, "New")
	testenv.Must(in.t, err)
	key, err := in.api.CreateAPIKey(in.t.Context(), in.env.OperatorToken, project.ID, "prod", "new")
	testenv.Must(in.t, err)
	return key
}

// one is a batch that is not noted: of another organization, or refused.
var one = client.Batch{Body: []byte(`{"logs":[{"timestamp":"2026-11-20T12:00:00Z","level":"info","message":"one"}]}`)}

// awaitAdmitted waits until the key of another organization posts.
func (in *installation) awaitAdmitted(key string) {
	in.t.Helper()
	testenv.Eventually(in.t, func() error {
		_, err := in.api.Post(in.t.Context(), key, one)
		return err
	})
}

// refuses posts with a revoked key until the returned function is called:
// an answer says 401, or that the process can't tell yet.
func (in *installation) refuses(key string) (end func()) {
	ctx, cancel := context.WithCancel(in.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		refused := 0
		for ctx.Err() == nil {
			_, err := in.api.Post(ctx, key, one)
			var problem *client.Problem
			switch {
			case err == nil:
				in.t.Error("a revoked key was answered with 200")
				return
			case errors.As(err, &problem) && problem.Status == http.StatusUnauthorized:
				refused++
				lifecycle.Pause(ctx, 300*time.Millisecond) // requests without a valid key have a limit
			case errors.As(err, &problem) && problem.Status != http.StatusInternalServerError:
				in.t.Errorf("a revoked key was answered with %v", problem)
				return
			}
			pause(ctx)
		}
		if refused == 0 {
			in.t.Error("the revoked key was never answered with 401")
		}
	})
	return func() { cancel(); running.Wait() }
}

// The last bytes of the log are gone after a power cut, and the database is
// intact: nothing is accepted until weir resume, as the page on backups has it,
// and all goes on from there. What had been applied stays, once.
func TestShortened(t *testing.T) {
	for name, shorten := range map[string]func(t *testing.T, segment string){
		"by forty bytes":     func(t *testing.T, segment string) { cutOff(t, segment, 40) },
		"by its last batch":  func(t *testing.T, segment string) { cutOff(t, segment, lastBatch(t, segment)) },
		"by its last file":   func(t *testing.T, segment string) { testenv.Must(t, os.Remove(segment)) },
		"by damaged batches": damage,
	} {
		t.Run(name, func(t *testing.T) {
			in := start(t, folder(t), nil)
			end := in.load(4, 20, 100)
			in.awaitAcked(2000)
			end()
			in.verify()
			in.running.Kill()
			written := in.newest() // as many as the spread of a project, fewer where its keys share partitions
			for _, segment := range written[:(len(written)+1)/2] {
				shorten(t, segment)
			}
			in.acceptsNothing()
			in.resume("lost its end", "weir.logs.v1", "may be lost too")
			in.restart()
			in.verify()
			end = in.load(4, 20, 100)
			in.awaitAcked(500)
			end()
			in.verify()
			in.stop()
		})
	}
}

// The last batch of every topic is gone, of keys and accounts as well. What
// modules publish at the next start grows their logs past positions.
func TestEveryTopicIsShortened(t *testing.T) {
	in := start(t, folder(t), nil)
	end := in.load(4, 20, 100)
	in.awaitAcked(2000)
	end()
	in.verify()
	in.running.Kill()
	files, err := filepath.Glob(filepath.Join(in.dir, "kafka", "partitions", "*", "*.dat"))
	testenv.Must(t, err)
	for _, segment := range files {
		if info, err := os.Stat(segment); err == nil && info.Size() > 0 {
			cutOff(t, segment, lastBatch(t, segment))
		}
	}
	in.acceptsNothing()
	in.resume("lost its end")
	in.restart()
	in.awaitPost(in.env.APIKey)
	in.verify()
	in.stop()
	in.restart()
	in.verify()
	in.stop()
}

// newest returns the newest file with records of each partition of
// weir.logs.v1 that has any.
func (in *installation) newest() (found []string) {
	in.t.Helper()
	for p := range contract.DefaultLogPartitions {
		files, err := filepath.Glob(filepath.Join(in.dir, "kafka", "partitions", fmt.Sprintf("%s-%d", contract.TopicLogs, p), "*.dat"))
		testenv.Must(in.t, err)
		slices.Sort(files)
		for _, file := range slices.Backward(files) { // the last is empty after packing
			if info, err := os.Stat(file); err == nil && info.Size() > 0 {
				found = append(found, file)
				break
			}
		}
	}
	return found
}

func cutOff(t *testing.T, file string, bytes int64) {
	t.Helper()
	info, err := os.Stat(file)
	testenv.Must(t, err)
	testenv.Must(t, os.Truncate(file, info.Size()-bytes))
}

// lastBatch returns the size of a file's last batch.
func lastBatch(t *testing.T, file string) (size int64) {
	t.Helper()
	whole, err := os.ReadFile(file)
	testenv.Must(t, err)
	for at := int64(0); at < int64(len(whole)); at += size {
		size = 12 + int64(binary.BigEndian.Uint32(whole[at+8:]))
	}
	return size
}

// damage changes a byte of the last batch but one.
func damage(t *testing.T, file string) {
	t.Helper()
	whole, err := os.ReadFile(file)
	testenv.Must(t, err)
	before := int64(len(whole)) - lastBatch(t, file)
	whole[before-1] ^= 1
	testenv.Must(t, os.WriteFile(file, whole, 0o600))
}

// acceptsNothing starts a process, which refuses each post and says why, or
// ends with the way out: it never serves on a damaged log.
func (in *installation) acceptsNothing() {
	in.t.Helper()
	in.launch()
	testenv.Eventually(in.t, func() error {
		if in.running.HasEnded() {
			if !strings.Contains(in.running.Output.String(), "weir resume") {
				in.t.Fatalf("ended without saying what to do:\n%s", in.output())
			}
			return nil
		}
		if err := in.connect(); err != nil {
			return err
		}
		err := in.post(in.t.Context(), in.env.APIKey, 1, 10)
		var problem *client.Problem
		switch {
		case err == nil:
			in.t.Fatal("a post is answered with 200")
		case !errors.As(err, &problem):
			return fmt.Errorf("not answered: %w", err)
		case problem.Status != http.StatusInternalServerError || problem.RetryAfter == 0:
			in.t.Fatalf("a post is answered %v", problem)
		case !strings.Contains(problem.Detail, "weir resume"):
			return fmt.Errorf("the answer doesn't say why: %w", problem)
		}
		return nil
	})
	in.running.Kill()
}

// resume does what the page on backups says, and expects some words of it.
func (in *installation) resume(words ...string) {
	in.t.Helper()
	weir := filepath.Dir(programs.Build(in.t, "deploy/cmd/weir"))
	script := strings.ReplaceAll(strings.Join(docstest.BlocksOf(in.t, "backup.md", "A log that lost its end"), ""), "=.weir", "="+in.dir)
	shell := programs.Launch(in.t, "/bin/sh", map[string]string{"PATH": weir + ":" + os.Getenv("PATH")}, "-c", script)
	if err := shell.Wait(); err != nil {
		in.t.Fatalf("%v:\n%s", err, shell.Output.String())
	}
	for _, word := range words {
		if !strings.Contains(shell.Output.String(), word) {
			in.t.Errorf("weir resume says nothing of %q:\n%s", word, shell.Output.String())
		}
	}
}
