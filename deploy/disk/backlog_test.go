//go:build disk

package disk

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// A start with entries that cannot be applied for now serves: posts are
// accepted, reads are as of what is applied, and /readyz and the log say
// that it catches up. It lasts as long as it lasts.
func TestStartWithABacklog(t *testing.T) {
	in := startAnywhere(t)
	if err := in.post(t.Context(), in.env.APIKey, 100, 100); err != nil {
		t.Fatal(err)
	}
	in.verify()
	before := in.consumed()
	release := in.hinderLedger()
	if err := in.post(t.Context(), in.env.APIKey, 100, 100); err != nil {
		t.Fatal(err)
	}
	in.running.Kill() // and PostgreSQL goes on, with the lock
	in.restart()      // which waits for the hints
	testenv.Eventually(t, startLimit, func() error {
		if said, err := in.readyz(); err != nil || said.Status != "catching_up" || !strings.HasPrefix(said.Behind[0].Part, "ledger: ") {
			return fmt.Errorf("/readyz says %+v, %w", said, err)
		}
		if !strings.Contains(in.running.Output.String(), "catching up") {
			return errors.New("the log does not say that it catches up")
		}
		return nil
	})
	in.post200()
	if now := in.consumed(); now != before {
		t.Errorf("%d bytes are charged while the ledger can charge nothing; %d before", now, before)
	}
	release()
	testenv.Eventually(t, startLimit, func() error {
		if said, err := in.readyz(); err != nil || said.Status != "ready" {
			return fmt.Errorf("/readyz says %+v, %w", said, err)
		}
		return nil
	})
	in.verify()
	in.stop()
}

func (in *installation) post200() {
	in.t.Helper()
	if err := in.post(in.t.Context(), in.env.APIKey, 10, 100); err != nil {
		in.t.Error(err)
	}
}

func (in *installation) consumed() int64 {
	in.t.Helper()
	balance, err := in.api.Balance(in.t.Context(), in.env.ServiceToken, in.env.Organization)
	if err != nil {
		in.t.Fatal(err)
	}
	return balance.Consumed
}

// hinderLedger keeps the ledger from charging, by a lock that lets others
// read, until the returned function is called.
func (in *installation) hinderLedger() (release func()) {
	in.t.Helper()
	url, err := postgres.Running(in.dir + "/postgres")
	if err != nil {
		in.t.Fatal(err)
	}
	conn, err := pgx.Connect(in.t.Context(), url)
	if err != nil {
		in.t.Fatal(err)
	}
	if _, err := conn.Exec(in.t.Context(), `BEGIN; LOCK TABLE ledger.ranges IN EXCLUSIVE MODE`); err != nil {
		in.t.Fatal(err)
	}
	return func() {
		if err := conn.Close(in.t.Context()); err != nil {
			in.t.Error(err)
		}
	}
}

// readyz returns what /readyz says with 200.
func (in *installation) readyz() (said httpapi.ReadyAnswer, err error) {
	authorities, err := client.Authorities(in.env.CAFile)
	if err != nil {
		return said, err
	}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}}
	defer web.CloseIdleConnections()
	answer, err := web.Get(strings.TrimSuffix(in.env.BaseURL, "/v1") + "/readyz")
	if err != nil {
		return said, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return said, fmt.Errorf("%d %s: %w", answer.StatusCode, body, err)
	}
	return said, json.Unmarshal(body, &said)
}
