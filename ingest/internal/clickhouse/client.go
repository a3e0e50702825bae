package clickhouse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A client sends statements to one address. It is safe for concurrent use.
type client struct {
	address        url.URL // without path and user
	database       string
	user, password string
	quorum         int
	http           *http.Client
}

// Settings are those of one statement.
type settings map[string]string

// Parse reads an address: http(s)://user:password@host:8123/database. Its
// errors don't show the password.
func parse(address string) (*client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	database := strings.Trim(u.Path, "/")
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("it is no URL such as https://user:password@host:8443/weir")
	case strings.Trim(database, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || database == "":
		return nil, fmt.Errorf("its path %q is no name of a database", u.Path)
	}
	c := &client{database: database, address: url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}, http: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second,
			ResponseHeaderTimeout: longestStatement,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would take the password along
	}}
	if u.User != nil {
		c.user = u.User.Username()
		c.password, _ = u.User.Password()
	}
	return c, nil
}

// longestStatement is how long a server may work before it is taken for dead.
const longestStatement = 5 * time.Minute

// Check returns what is wrong with an address.
func Check(address string) error {
	_, err := parse(address)
	return err
}

// An Error is the answer of a server that refuses a statement.
type Error struct {
	Code int // of ClickHouse's ErrorCodes
	Text string
}

func (e *Error) Error() string { return e.Text }

// The codes that something is made of.
const (
	codeUnknownTable    = 60
	codeUnknownDatabase = 81
	codeTooManyRows     = 158
	codeTimeout         = 159
	codeTooMuchMemory   = 241
	codeTooManyBytes    = 307
)

// hasCode reports whether a server refused a statement with one of some codes.
func hasCode(err error, codes ...int) bool {
	var refused *Error
	return errors.As(err, &refused) && slices.Contains(codes, refused.Code)
}

// An answer is what a statement returns. It is whole: the server had ended
// before it began to answer.
type answer struct {
	io.ReadCloser
	read int64 // bytes that the server has read
}

// everyone sees the rows of all organizations, and nobody none; see the row policies.
const (
	everyone = "*"
	nobody   = ""
)

// run runs a statement as an organization, which the row policies compare with
// log_comment: it needs no declaration at the server, and shows in its log of queries.
func (c *client) run(ctx context.Context, organization, query string, with settings, body []byte) (*answer, error) {
	values := url.Values{"query": {query}, "database": {c.database}, "log_comment": {organization}, "wait_end_of_query": {"1"}}
	for name, value := range with {
		values.Set(name, value)
	}
	address := c.address
	address.RawQuery = values.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.user != "" {
		request.Header.Set("X-ClickHouse-User", c.user)
		request.Header.Set("X-ClickHouse-Key", c.password)
	}
	response, err := c.http.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) { // it shows the whole statement
			err = failed.Err
		}
		return nil, fmt.Errorf("cannot reach ClickHouse: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, refused(response)
	}
	return &answer{response.Body, bytesRead(response.Header)}, nil
}

// maxComplaint bounds what is kept of an error.
const maxComplaint = 1 << 10

func refused(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxComplaint))
	code, _ := strconv.Atoi(response.Header.Get("X-ClickHouse-Exception-Code"))
	return &Error{Code: code, Text: fmt.Sprintf("ClickHouse answers %d: %s", response.StatusCode, bytes.TrimSpace(text))}
}

func bytesRead(header http.Header) int64 {
	var summary struct {
		Read int64 `json:"read_bytes,string"`
	}
	_ = json.Unmarshal([]byte(header.Get("X-ClickHouse-Summary")), &summary) // a front may have none
	return summary.Read
}

// exec runs a statement without a result.
func (c *client) exec(ctx context.Context, statement string, with settings, body []byte) error {
	answer, err := c.run(ctx, everyone, statement, with, body)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer)
	return errors.Join(err, answer.Close())
}

// numbers runs a query that returns numbers, in rows.
func (c *client) numbers(ctx context.Context, organization, query string, with settings) (rows [][]int64, err error) {
	answer, err := c.run(ctx, organization, query+" FORMAT TabSeparated", with, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	text, err := io.ReadAll(answer)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var row []int64
		for cell := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), "\t") {
			number, err := strconv.ParseInt(cell, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("ClickHouse answers %.40q, not a number", cell)
			}
			row = append(row, number)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// consistent are the settings of a read that must see all inserts that were
// acknowledged: of replicas that form a quorum.
func (c *client) consistent(with settings) settings {
	all := maps.Clone(with)
	if all == nil {
		all = settings{}
	}
	if c.quorum > 1 {
		all["select_sequential_consistency"] = "1"
	}
	return all
}

// literal is a text as a constant of SQL, whatever bytes it has.
func literal(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\x00", `\0`).Replace(text) + "'"
}

// literals are a list of them.
func literals(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = literal(text)
	}
	return strings.Join(quoted, ", ")
}

// bytesLiteral is a fixed string.
func bytesLiteral(id [16]byte) string { return fmt.Sprintf("unhex('%x')", id) }
