package fairness

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/shared/lifecycle"
)

// attacks.yaml has what tenants do, in its order.
//
//go:embed attacks.yaml
var attacksText []byte

var scenarios = sync.OnceValue(func() (all struct {
	Attacks []attack
	Bodies  map[string]entries // bounded by attacks.yaml
}) {
	if err := yaml.Unmarshal(attacksText, &all); err != nil {
		panic(err) // it is part of the program
	}
	return all
})

// An attack is one way in which a noisy tenant may disturb others.
type attack struct {
	Name, Does string
	Lawful     bool     // it need not be refused
	Prepare    []string // before the measurement
	Workers    int
	As         string // who asks: a key's owner, who may send all on the streams of a connection, an admin, billing, a member
	Header     map[string]string
	Asks       []string
}

// entries are those of a body.
type entries struct {
	Entries int
	Entry   string
	More    []string
}

type step = func(ctx context.Context, n *noisy) error

// How attacks are made that are no requests, by their names.
var connecting = map[string]step{ // bounded by attacks.yaml
	"silent-sockets":  silence(1),
	"spread-sockets":  silence(250),
	"settings-frames": sends(4, settingsFlood),
	"reset-streams":   sends(8, resetFlood),
	"empty-frames":    sends(8, pingFlood, dataFlood),
	"header-blocks":   sends(8, blockFlood, endlessFlood),
	"protocol-errors": sends(32, wrongFrame, noRequest),
}

// How requests are made that are no text.
var asking = map[string]func(n *noisy, worker int, i int64) ask{ // bounded by attacks.yaml
	"full-rate":         fullRate,
	"endless-bodies":    endlessBody,
	"slow-streams":      slowBody,
	"refusals":          refusal,
	"guessed-passwords": guesses,
}

// What happens to answers that are not read to their end.
var reading = map[string]func(ctx context.Context, n *noisy, answer *http.Response){ // bounded by attacks.yaml
	"unread-answers": leaveUnread,
	"slow-lines":     readSlowly,
}

// Attacks lists the names of all attacks.
func Attacks() (names []string) {
	for _, a := range scenarios().Attacks {
		names = append(names, a.Name)
	}
	return names
}

// chosen returns the attacks of these names; all of them without a name.
func chosen(names []string) (found []attack, err error) {
	if len(names) == 0 {
		return scenarios().Attacks, nil
	}
	for _, name := range names {
		i := slices.Index(Attacks(), name)
		if i < 0 {
			return nil, fmt.Errorf("there is no attack %q: choose among %s", name, strings.Join(Attacks(), ", "))
		}
		found = append(found, scenarios().Attacks[i])
	}
	return found, nil
}

// run attacks until ctx ends; refusals are no errors.
func (a attack) run(ctx context.Context, n *noisy) error {
	if connect := connecting[a.Name]; connect != nil {
		return connect(ctx, n)
	}
	next := asking[a.Name]
	if next == nil {
		next = a.inTurn
	}
	var i atomic.Int64 // counts all requests
	return repeat(ctx, a.Workers, func(worker int) error {
		request := next(n, worker, i.Add(1))
		answer, err := request.do(ctx, n)
		if err != nil {
			if ctx.Err() == nil {
				n.outcome.count("closed") // a broken connection
			}
			return err
		}
		defer answer.Body.Close()
		if read := reading[a.Name]; read != nil {
			read(ctx, n, answer)
		} else if tail := n.outcome.read(answer); answer.StatusCode == http.StatusOK {
			n.cursors[worker] = cursorOf(tail)
		}
		if answer.StatusCode == http.StatusTooManyRequests && !request.rude {
			lifecycle.Pause(ctx, obeyed)
		}
		return nil
	})
}

// obeyed limits a refused worker's wait: the client is impolite, but does
// not only burn its own processor.
const obeyed = 50 * time.Millisecond

// An ask is a request of an attack.
type ask struct {
	method, address string
	header          http.Header
	body            io.Reader
	by              *http.Client // nil: one of HTTP/1 without cookies
	rude            bool         // it does not even rest a moment when it is refused
}

func (a ask) do(ctx context.Context, n *noisy) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, a.method, a.address, a.body)
	if err != nil {
		return nil, err
	}
	if a.header != nil {
		r.Header = a.header
	}
	return cmp.Or(a.by, n.plain).Do(r)
}

// as is an ask of somebody.
func (n *noisy) as(who string) ask {
	a := ask{address: n.Env.BaseURL, header: http.Header{"Content-Type": {"application/json"}}}
	switch who {
	case "admin":
		a.header.Set("Authorization", "Bearer "+n.AdminToken)
	case "billing":
		a.header.Set("Authorization", "Bearer "+n.Tenant.Billing)
	case "member":
		return ask{address: n.Env.ConsoleURL, by: n.browser.Client}
	case "stream":
		a.by = n.streams[0]
		fallthrough
	default:
		a.header.Set("X-Api-Key", n.Tenant.Key)
	}
	return a
}

// inTurn asks for what the attack has, each worker for one of it again and again.
func (a attack) inTurn(n *noisy, worker int, i int64) ask {
	fill := func(text string) string {
		return os.Expand(text, func(name string) string { return n.value(name, worker, i, i) })
	}
	method, rest, _ := strings.Cut(a.Asks[worker%len(a.Asks)], " ")
	path, body, _ := strings.Cut(rest, " ")
	request := n.as(a.As)
	request.method, request.address = method, request.address+fill(path)
	for name, value := range a.Header {
		request.header.Set(name, fill(value))
	}
	if made, named := scenarios().Bodies[body]; named {
		request.body = bytes.NewReader(made.body(n, i))
	} else if body == "packed" {
		request.body = bytes.NewReader(n.packed)
	} else {
		request.body = strings.NewReader(fill(body))
	}
	return request
}

// value is what a name in braces stands for: i is the request's number, and
// number the entry's.
func (n *noisy) value(name string, worker int, i, number int64) string {
	now := time.Now().UTC()
	switch name {
	case "organization":
		return n.Tenant.Organization
	case "project":
		return n.Tenant.Project
	case "project-key":
		return n.keys[i%int64(len(n.keys))]
	case "group":
		return n.groups[worker%len(n.groups)]
	case "cursor":
		if n.cursors[worker] == "" {
			return ""
		}
		return "&cursor=" + n.cursors[worker]
	case "i":
		return fmt.Sprint(i)
	case "number":
		return fmt.Sprint(number)
	case "kind":
		return subject.Letters(number)
	case "long-name":
		return strings.Repeat("n", 240) + subject.Letters(number)
	case "now":
		return now.Format(subject.StampForm)
	case "moment":
		return now.Format(time.RFC3339Nano)
	case "second":
		return now.Format(time.RFC3339)
	case "yesterday":
		return now.AddDate(0, 0, -1).Format(time.RFC3339)
	case "a-year-ago":
		return now.AddDate(-1, 0, 1).Format(time.RFC3339)
	}
	return large(name, i, number)
}

var nextCursor = regexp.MustCompile(`"next_cursor":"([^"]+)"`)

// cursorOf finds that of the next page at the end of a page; empty: it is the last.
func cursorOf(tail []byte) string {
	if found := nextCursor.FindSubmatch(tail); found != nil {
		return string(found[1])
	}
	return ""
}

// yearZero is a forged cursor before everything.
var yearZero = base64.RawURLEncoding.EncodeToString([]byte(`{"b":"` + strings.Repeat("0", 32) + `","i":0,"n":0,"s":-62167219200}`))

func (n *noisy) post(body io.Reader) ask {
	a := n.as("")
	a.method, a.address, a.body = http.MethodPost, a.address+"/logs", body
	return a
}

func fullRate(n *noisy, worker int, _ int64) ask {
	n.bodies[worker].Fill(time.Now())
	return n.post(bytes.NewReader(n.bodies[worker].Text))
}

// endless are the sizes of the endless bodies, in megabytes: together
// they fill half a gigabyte.
var endless = []int{127, 127, 127, 15, 15, 15, 15, 4, 4, 4, 1, 1, 1}

func endlessBody(n *noisy, worker int, _ int64) ask {
	a := n.post(written(func(out io.Writer) error { return n.endless.inflate(out, endless[worker]) }))
	a.header.Set("Content-Encoding", "gzip")
	return a
}

// slowBody has a byte a second.
func slowBody(n *noisy, worker int, _ int64) ask {
	a := n.post(written(func(out io.Writer) (err error) {
		for text := `{"logs":[` + strings.Repeat(" ", 1<<10); text != "" && err == nil; text = text[1:] {
			_, err = io.WriteString(out, text[:1])
			time.Sleep(time.Second)
		}
		return err
	}))
	a.by = n.streams[worker%len(n.streams)]
	return a
}

// written is a body that write makes while it is sent.
func written(write func(out io.Writer) error) io.Reader {
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(write(writer)) }()
	return reader
}

// refusal is of an unknown key, path or method, or of a wrong password.
func refusal(n *noisy, worker int, i int64) (a ask) {
	switch worker % 4 {
	case 0:
		a = n.post(strings.NewReader(`{"logs":[]}`))
		a.header.Set("X-Api-Key", fmt.Sprint(n.Tenant.Key, i))
	case 1:
		a = ask{method: http.MethodGet, address: fmt.Sprint(n.Env.BaseURL, "/none/", i)}
	case 2:
		a = ask{method: http.MethodDelete, address: n.Env.BaseURL + "/logs"}
	default:
		a = n.guess(n.Env.ConsoleEmail)
	}
	a.rude = true
	return a
}

// guesses are sign-ins as a member and as an unknown person, each from
// another network.
func guesses(n *noisy, _ int, i int64) ask {
	email := n.Env.ConsoleEmail
	if i%2 == 0 {
		email = fmt.Sprintf("nobody%d@example.com", i)
	}
	a := n.guess(email)
	a.rude, a.by = true, subject.Over(&http.Transport{
		DisableKeepAlives: true, TLSClientConfig: n.browser.TLS, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return n.browser.Dial(ctx, network(rand.IntN(1<<22)))
		},
	})
	return a
}

// guess is a sign-in with a wrong password.
func (n *noisy) guess(email string) ask {
	form := url.Values{"email": {email}, "password": {"correct horse " + email}}
	return ask{method: http.MethodPost, address: n.Env.ConsoleURL + "/sign-in", body: strings.NewReader(form.Encode()),
		header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}
}
