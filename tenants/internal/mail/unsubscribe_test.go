package mail_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/mail"
)

var mailing = mail.Mailing{Organization: "org_1", Member: "mem_1", Kind: tenants.StatementMail}

func queryOf(t *testing.T, link string) url.Values {
	t.Helper()
	parsed, err := url.Parse(link)
	if err != nil || parsed.Path != mail.UnsubscribePath {
		t.Fatalf("%q: %v", link, err)
	}
	return parsed.Query()
}

// A link has the configured origin, is the same
// each time, and reads back as its mailing.
func TestLink(t *testing.T) {
	links := mail.NewLinks("https://weir.example", []byte("key"))
	link := links.To(mailing)
	if !strings.HasPrefix(link, "https://weir.example/console/unsubscribe?") || link != links.To(mailing) {
		t.Errorf("the link is %q", link)
	}
	if read, err := links.Read(queryOf(t, link)); err != nil || read != mailing {
		t.Errorf("it reads as %+v, %v", read, err)
	}
}

// Nobody can derive one link from another, nor make one without the key.
func TestForgedLinks(t *testing.T) {
	links := mail.NewLinks("https://weir.example", []byte("key"))
	for name, change := range map[string]func(url.Values){
		"another member":       func(q url.Values) { q.Set("member", "mem_2") },
		"another organization": func(q url.Values) { q.Set("organization", "org_2") },
		"another kind":         func(q url.Values) { q.Set("kind", "threshold") },
		"a shifted boundary":   func(q url.Values) { q.Set("organization", "org_1m"); q.Set("member", "em_1") },
		"no signature":         func(q url.Values) { q.Del("signature") },
		"a cut one":            func(q url.Values) { q.Set("signature", q.Get("signature")[:16]) },
		"another key": func(q url.Values) {
			other := queryOf(t, mail.NewLinks("https://weir.example", []byte("other")).To(mailing))
			q.Set("signature", other.Get("signature"))
		},
	} {
		query := queryOf(t, links.To(mailing))
		change(query)
		if read, err := links.Read(query); !errors.Is(err, mail.ErrLink) {
			t.Errorf("%s: %+v, %v", name, read, err)
		}
	}
}
