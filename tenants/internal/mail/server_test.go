package mail_test

import (
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/internal/mail"
	"github.com/weirlog/weir/tenants/mailtest"
)

func message(to string) mail.Message {
	return mail.Message{ID: "msg_1", To: to, Name: "Ada Ä", Subject: "Quota exhausted", Text: "Nothing is left.", HTML: "<p>Nothing is left.</p>", At: time.Now()}
}

// A message arrives as text and as HTML, over TLS, with an unchanging id.
func TestSend(t *testing.T) {
	office := mailtest.Open(t)
	testenv.Must(t, office.Server(t, mailtest.Password).Send(t.Context(), message("ada@example.com")))
	taken := office.Taken()
	if len(taken) != 1 {
		t.Fatalf("taken: %q", taken)
	}
	for _, part := range []string{"Message-ID: <msg_1@weir>", "Subject: Quota exhausted", "<ada@example.com>", "Nothing is left.", "<p>Nothing is left.</p>", "auto-generated"} {
		if !strings.Contains(taken[0], part) {
			t.Errorf("it lacks %q:\n%s", part, taken[0])
		}
	}
}

// A message with an unsubscribe link declares it to mail programs (RFC
// 8058); a link that they could not follow is refused.
func TestUnsubscribe(t *testing.T) {
	office := mailtest.Open(t)
	const link = "https://weir.example/console/unsubscribe?kind=threshold&member=mem_0123456789abcdef0123456789abcdef&signature=0123456789abcdef012345"
	ended := message("ada@example.com")
	ended.Unsubscribe = link
	for _, each := range []mail.Message{ended, message("ada@example.com")} {
		testenv.Must(t, office.Server(t, mailtest.Password).Send(t.Context(), each))
		taken := office.Taken()
		read, err := netmail.ReadMessage(strings.NewReader(taken[len(taken)-1]))
		testenv.Must(t, err)
		want := [2]string{}
		if each.Unsubscribe != "" {
			want = [2]string{"<" + link + ">", "List-Unsubscribe=One-Click"}
		}
		if got := [2]string{read.Header.Get("List-Unsubscribe"), read.Header.Get("List-Unsubscribe-Post")}; got != want {
			t.Errorf("the headers are %q, want %q", got, want)
		}
	}
	ended.Unsubscribe = "http://weir.example"
	if err := office.Server(t, mailtest.Password).Send(t.Context(), ended); !errors.Is(err, mail.ErrRefused) {
		t.Errorf("a link without TLS: %v", err)
	}
}

// A person's name may be any text.
func TestNames(t *testing.T) {
	office := mailtest.Open(t)
	for i, name := range []string{"", `Ada "Countess" Lovelace`, `back\slash\`, "Lovelace, Ada <ada@elsewhere.example>", "Ada\r\nBcc: eve@example.com", "Ä"} {
		named := message("ada@example.com")
		named.Name = name
		if err := office.Server(t, mailtest.Password).Send(t.Context(), named); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		read, err := netmail.ReadMessage(strings.NewReader(office.Taken()[i]))
		testenv.Must(t, err)
		want := netmail.Address{Name: name, Address: "ada@example.com"}
		if to, err := read.Header.AddressList("To"); err != nil || len(to) != 1 || *to[0] != want || read.Header.Get("Bcc") != "" {
			t.Errorf("%q is sent to %v, %v, with %v", name, to, err, read.Header)
		}
	}
}

// A permanent refusal is not retried; a transient error is.
func TestRefusals(t *testing.T) {
	office := mailtest.Open(t)
	for to, refused := range map[string]bool{"nobody@example.com": true, "busy@example.com": false} {
		if err := office.Server(t, mailtest.Password).Send(t.Context(), message(to)); err == nil || errors.Is(err, mail.ErrRefused) != refused {
			t.Errorf("%s: %v", to, err)
		}
	}
	err := office.Server(t, "wrong-5eed").Send(t.Context(), message("ada@example.com"))
	if err == nil || errors.Is(err, mail.ErrRefused) || strings.Contains(fmt.Sprint(err), "5eed") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// An invalid address is refused, and its password is not shown.
func TestParseServer(t *testing.T) {
	for _, address := range []string{"http://mail.example", "smtp://:5eed@", "smtp://u:5eed@mail.example:99999", "%5eed"} {
		if _, err := mail.ParseServer(httpapi.Secret(address), "weir@example.com", nil); err == nil || strings.Contains(err.Error(), "5eed") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := mail.ParseServer("smtps://mail.example", "nobody", nil); err == nil {
		t.Error("a sender without an address is taken")
	}
}
