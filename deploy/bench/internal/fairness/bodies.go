package fairness

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/measure"
)

// body is the i-th of these entries.
func (e entries) body(n *noisy, i int64) []byte {
	var body bytes.Buffer
	body.WriteString(`{"logs":[`)
	for k := range e.Entries + len(e.More) {
		text := e.Entry
		if k >= e.Entries {
			text = e.More[k-e.Entries]
		}
		if k > 0 {
			body.WriteByte(',')
		}
		body.WriteString(os.Expand(text, func(name string) string { return n.value(name, 0, i, i*int64(e.Entries)+int64(k)) }))
	}
	body.WriteString("]}")
	return body.Bytes()
}

// large is what a name stands for that is much, or of another time.
func large(name string, i, number int64) string {
	const deepLevels = 115 // with the levels around it at most 128
	nested := func(value string) string {
		return strings.Repeat("[", deepLevels) + value + strings.Repeat("]", deepLevels)
	}
	switch name {
	case "year-zero":
		return yearZero
	case "odd-year": // each body spans all of time
		return fmt.Sprintf("%s-06-%02dT12:%02d:%02d.000Z", []string{"0000", "9999"}[number%2], 1+i%28, number/60%60, number%60)
	case "499-KB":
		return strings.Repeat("<", 499<<10)
	case "nested":
		return nested("")
	case "nested-zeros":
		return nested(strings.Repeat("0,", 220<<10) + "0")
	case "1000-names":
		names := make([]string, 1000)
		for k := range names {
			names[k] = fmt.Sprintf(`"%s%d":"ü"`, subject.Letters(number), k)
		}
		return strings.Join(names, ",")
	case "large-stack":
		return strings.ReplaceAll(largeStack(), anyKind, subject.Letters(number))
	case "similar-stack": // 60 frames, and one of the kind's own
		return strings.ReplaceAll(similarStack(), anyKind, subject.Letters(number))
	}
	panic("nothing is called " + name)
}

// anyKind stands for a kind in stacks, and is as long as most are.
const anyKind = "\x00\x00\x00\x00"

// Stacks are made once: an attack takes processor time from the watched
// organizations. A large one has about 100 KB.
var (
	largeStack = sync.OnceValue(func() string {
		return stack("at main (/srv/shop/src/main.js:1:7)", 1900, "at "+anyKind+".call%[1]s (/srv/shop/src/"+anyKind+"/file.js:%[2]d:7)")
	})
	similarStack = sync.OnceValue(func() string {
		return stack("at "+anyKind+" (/srv/shop/src/cart.js:1:7)", 60, "at step%[1]s (/srv/shop/src/%[1]s.js:%[2]d:7)")
	})
)

// stack has so many frames of a form after the first.
func stack(first string, frames int64, form string) string {
	text := []string{`"` + first + `"`}
	for i := range frames {
		text = append(text, fmt.Sprintf(`"`+form+`"`, subject.Letters(i), i+1))
	}
	return "[" + strings.Join(text, ",") + "]"
}

// preparing is what an attack may need, by name.
var preparing = map[string]step{ // bounded by attacks.yaml
	"endless":  packEndless,
	"bomb":     packBomb,
	"broken":   packBroken,
	"projects": makeProjects,
	"groups":   awaitGroups,
	"sign in":  func(ctx context.Context, n *noisy) error { return n.browser.SignInMember(ctx) },
}

// prepare does what an attack needs.
func (n *noisy) prepare(ctx context.Context, what string) error {
	var bodies int64
	var name string
	if _, err := fmt.Sscanf(what, "store %d %s", &bodies, &name); err != nil {
		return preparing[what](ctx, n)
	}
	for i := range bodies {
		body := client.Batch{Body: scenarios().Bodies[name].body(n, i), IdempotencyKey: fmt.Sprint("stored ", i)}
		if _, err := n.api.Deliver(ctx, n.Tenant.Key, body); err != nil {
			return err
		}
	}
	return measure.Until(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		page, err := n.api.Logs(ctx, n.Tenant.Key, client.LogsQuery{Project: n.Tenant.Project, Limit: 1})
		return len(page.Items) > 0, err
	})
}

// makeProjects creates projects, each with a key.
func makeProjects(ctx context.Context, n *noisy) error {
	const projects = 20
	for i := range projects {
		key, err := subject.NewKey(ctx, n.api, n.AdminToken, n.Tenant.Organization, fmt.Sprint("spread ", i))
		if err != nil {
			return err
		}
		n.keys = append(n.keys, key.Key)
	}
	return nil
}

// awaitGroups waits until so many errors have groups that each worker has its
// own.
func awaitGroups(ctx context.Context, n *noisy) error {
	const least = 100
	return measure.Until(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		groups, err := n.api.ErrorGroups(ctx, n.Tenant.Key, n.Tenant.Project)
		n.groups = n.groups[:0]
		for _, g := range groups {
			n.groups = append(n.groups, g.ID)
		}
		return len(n.groups) >= least, err
	})
}

// packBroken makes a body whose fault shows only once it is unpacked.
func packBroken(_ context.Context, n *noisy) error {
	n.packed = gzipped(string(subject.NewBody(1000, 0).Text))
	n.packed[len(n.packed)-8] ^= 0xff // of the checksum
	return nil
}

// packBomb makes a small body that is large once unpacked, with nothing
// valid in it.
func packBomb(_ context.Context, n *noisy) error {
	n.packed = gzipped(`{"logs":[` + strings.TrimSuffix(strings.Repeat(`{},`, 127<<20/3-8), ",") + `]}`)
	return nil
}

func gzipped(text string) []byte {
	var to bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&to, gzip.BestCompression) // neither this nor a buffer fails
	_, _ = io.WriteString(writer, text)
	_ = writer.Close()
	return to.Bytes()
}

// endlessParts are pieces of deflated text. They are made once: to
// compress half a gigabyte again and again took the attacker more
// processor time than it cost the service.
type endlessParts struct{ head, spaces, empty []byte }

func packEndless(_ context.Context, n *noisy) error {
	const header = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" // of gzip, for a file without a name
	n.endless = endlessParts{append([]byte(header), deflated(`{"logs":[`)...), deflated(strings.Repeat(" ", 1<<20)), deflated("")}
	return nil
}

// deflated ends with a block that any other may follow.
func deflated(text string) []byte {
	var to bytes.Buffer
	writer, _ := flate.NewWriter(&to, flate.BestCompression) // neither this nor a buffer fails
	_, _ = io.WriteString(writer, text)
	_ = writer.Flush()
	return to.Bytes()
}

// inflate writes a stream that unpacks to so many megabytes of white space,
// and then an empty block each second.
func (p endlessParts) inflate(out io.Writer, megabytes int) error {
	_, err := out.Write(p.head)
	for range megabytes {
		if err == nil {
			_, err = out.Write(p.spaces)
		}
	}
	for err == nil {
		_, err = out.Write(p.empty)
		time.Sleep(time.Second)
	}
	return err
}
