//go:build disk

package disk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/port"
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
			if err != nil {
				t.Fatal(err)
			}
			in := start(t, folder(t), map[string]string{"WEIR_LISTEN": fmt.Sprintf("localhost:%d", free)})
			revoked, err := in.api.CreateAPIKey(t.Context(), in.env.OperatorToken, in.env.Project, "prod", "to be revoked")
			if err != nil {
				t.Fatal(err)
			}
			in.awaitPost(revoked.Key)
			in.stop()
			lose := in.remember(topics)

			in.restart()
			if err := in.api.RevokeAPIKey(t.Context(), in.env.OperatorToken, revoked.ID, "leaked"); err != nil {
				t.Fatal(err)
			}
			created := in.tenant()
			in.awaitAdmitted(created.Key)
			in.verify()
			in.running.Kill()
			lose()

			in.launch()
			end := in.refuses(revoked.Key)
			testenv.Eventually(t, startLimit, func() error { return in.api.Ready(t.Context()) })
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
			if err != nil {
				in.t.Fatal(err)
			}
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
	if err != nil {
		in.t.Fatal(err)
	}
	project, err := in.api.CreateProject(in.t.Context(), in.env.OperatorToken, organization.ID, "New")
	if err != nil {
		in.t.Fatal(err)
	}
	key, err := in.api.CreateAPIKey(in.t.Context(), in.env.OperatorToken, project.ID, "prod", "new")
	if err != nil {
		in.t.Fatal(err)
	}
	return key
}

// one is a batch that is not noted: of another organization, or refused.
var one = client.Batch{Body: []byte(`{"logs":[{"timestamp":"2026-11-20T12:00:00Z","level":"info","message":"one"}]}`)}

// awaitAdmitted waits until the key of another organization posts.
func (in *installation) awaitAdmitted(key string) {
	in.t.Helper()
	testenv.Eventually(in.t, viewLimit, func() error {
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
