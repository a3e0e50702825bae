package fairness

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
)

// leaveUnread requests large answers and never reads them.
func leaveUnread(ctx context.Context, n *noisy) error {
	return repeat(ctx, 6, func(int) error {
		conn, err := n.dial(ctx, nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET /v1/logs?limit=1000 HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\n\r\n", n.host, n.Tenant.Key); err != nil {
			return err
		}
		status, err := bufio.NewReaderSize(conn, 512).ReadString('\n')
		if err != nil {
			return err
		}
		if code := strings.Fields(status); len(code) > 1 {
			n.outcome.count(code[1])
		}
		lifecycle.Pause(ctx, 5*time.Second) // meanwhile the answer fills the buffers of both ends
		return nil
	})
}

// readWithoutPause lists entries and groups as fast as answers come.
func readWithoutPause(ctx context.Context, n *noisy) error {
	paths := []string{
		"/logs?limit=1000", "/logs?limit=100&q=nothing", "/logs?limit=1000&order=asc", "/projects/" + n.Tenant.Project + "/error-groups?q=nothing",
	}
	return repeat(ctx, 16, func(worker int) error { return n.get(ctx, paths[worker%len(paths)]) })
}

// searchBroadly searches everything for new words that occur nowhere.
func searchBroadly(ctx context.Context, n *noisy) error {
	var serial atomic.Int64
	return repeat(ctx, 16, func(int) error {
		return n.get(ctx, "/logs?limit=1000&q=large+entry+"+letters(serial.Add(1))+"&order="+[]string{"asc", "desc"}[serial.Load()%2])
	})
}

// storeUsage sends entries in 50 environments, so that there is
// usage to export.
func storeUsage(ctx context.Context, n *noisy) error {
	bodies := make([][]byte, 50)
	for i := range bodies {
		at := time.Now().UTC().Format(stampForm)
		bodies[i] = batch([]string{fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"m","environment":"e%d"}`, at, i)})
	}
	return n.store(ctx, bodies)
}

// exportUsage requests all usage of a year, current balances, which
// wait for pending bookings, and transfers.
func exportUsage(ctx context.Context, n *noisy) error {
	path := n.BaseURL + "/organizations/" + n.Tenant.Organization
	return repeat(ctx, 32, func(worker int) error {
		now := time.Now().UTC()
		query := url.Values{"from": {now.AddDate(-1, 0, 1).Format(time.RFC3339)}, "to": {now.Format(time.RFC3339)}}
		address := path + "/usage?bucket=hour&by=project,key,environment,outcome&" + query.Encode()
		switch worker % 4 {
		case 0:
			address = path + "/balance?at=" + url.QueryEscape(now.Format(time.RFC3339Nano))
		case 1:
			address = path + "/entries?" + query.Encode()
		}
		return n.ask(ctx, http.MethodGet, address, http.Header{"Authorization": {"Bearer " + n.Tenant.Billing}, "Accept": {"text/csv, application/json"}}, nil)
	})
}

// readAccount lists an organization's own data, and its changes, as
// fast as answers come.
func readAccount(ctx context.Context, n *noisy) error {
	of := "organization=" + n.Tenant.Organization
	paths := []string{"/audit-events?format=csv&" + of, "/audit-events?limit=100&" + of, "/projects?limit=100&" + of, "/api-keys?limit=100&" + of}
	return repeat(ctx, 32, func(worker int) error {
		return n.ask(ctx, http.MethodGet, n.BaseURL+paths[worker%len(paths)], http.Header{"Authorization": {"Bearer " + n.AdminToken}}, nil)
	})
}

// Readers of lines: how many bytes each reads at once, and then each second.
const (
	linesBurst     = 1 << 20
	linesPerSecond = 16 << 10
)

// readLinesSlowly requests all lines and reads them slowly.
func readLinesSlowly(ctx context.Context, n *noisy) error {
	return repeat(ctx, 8, func(int) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.BaseURL+"/logs", http.NoBody)
		if err != nil {
			return err
		}
		r.Header = http.Header{"X-Api-Key": {n.Tenant.Key}, "Accept": {"application/x-ndjson"}}
		answer, err := n.http.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			n.outcome.read(answer)
			n.obey(ctx, answer.StatusCode)
			return nil
		}
		n.takeSlowly(ctx, answer.Body)
		return nil
	})
}

// takeSlowly reads lines until they end or the other end closes.
func (n *noisy) takeSlowly(ctx context.Context, lines io.Reader) {
	_, err := io.CopyN(io.Discard, lines, linesBurst)
	for err == nil && ctx.Err() == nil {
		lifecycle.Pause(ctx, time.Second)
		_, err = io.CopyN(io.Discard, lines, linesPerSecond)
	}
	switch {
	case ctx.Err() != nil:
		n.outcome.count("200")
	case errors.Is(err, io.EOF):
		n.outcome.count("200 whole")
	default:
		n.outcome.count("closed")
	}
}

// pageThroughYears reads page after page, from the newest and from
// the oldest on.
func pageThroughYears(ctx context.Context, n *noisy) error {
	cursors := make([]string, 8)
	return repeat(ctx, len(cursors), func(worker int) error {
		order := []string{"desc", "asc"}[worker%2]
		return n.page(ctx, "/logs?limit=1000&order="+order, &cursors[worker])
	})
}

// readFromYearZero reads small pages from cursors before everything,
// forged and real.
func readFromYearZero(ctx context.Context, n *noisy) error {
	forged, err := json.Marshal(map[string]any{"s": -62167219200, "n": 0, "b": strings.Repeat("0", 32), "i": 0})
	if err != nil {
		return err
	}
	path := "/logs?limit=1&order=asc&cursor=" + base64.RawURLEncoding.EncodeToString(forged)
	cursors := make([]string, 8)
	return repeat(ctx, len(cursors), func(worker int) error {
		if worker%2 == 0 {
			return n.get(ctx, path)
		}
		return n.page(ctx, "/logs?limit=1&order=asc&q=answered", &cursors[worker])
	})
}

// page reads the cursor's page and moves the cursor on.
func (n *noisy) page(ctx context.Context, path string, cursor *string) error {
	if *cursor != "" {
		path += "&cursor=" + *cursor
	}
	answer, err := n.api.Call(ctx, client.Request{Method: http.MethodGet, Path: path, Header: map[string]string{"X-Api-Key": n.Tenant.Key}})
	if err != nil {
		return err
	}
	n.outcome.count(describe(answer.Status, answer.Body[:min(len(answer.Body), headBytes)], answer.Body[max(0, len(answer.Body)-headBytes):]))
	var list struct {
		NextCursor string `json:"next_cursor"`
	}
	if answer.Status == http.StatusOK {
		err = json.Unmarshal(answer.Body, &list)
		*cursor = list.NextCursor
	}
	n.obey(ctx, answer.Status)
	return err
}

// readConsole reads the page of the newest entries in six browsers.
func readConsole(ctx context.Context, n *noisy) error {
	browser, err := n.signedIn(ctx)
	if err != nil {
		return err
	}
	return repeat(ctx, 6, func(int) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.ConsoleURL+"/logs", http.NoBody)
		if err != nil {
			return err
		}
		return n.send(ctx, browser, r)
	})
}

// signedIn returns a browser with a session of the tenant's member.
func (n *noisy) signedIn(ctx context.Context) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{Transport: n.http.Transport, CheckRedirect: n.http.CheckRedirect, Jar: jar}
	return browser, signIn(ctx, browser, n.ConsoleURL, n.ConsoleEmail, n.ConsoleWord)
}

func signIn(ctx context.Context, browser *http.Client, console, email, password string) error {
	form := url.Values{"email": {email}, "password": {password}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, console+"/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := browser.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("cannot sign in: answered %d", answer.StatusCode)
	}
	return nil
}
