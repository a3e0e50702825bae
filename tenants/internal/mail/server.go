package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"strconv"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/weirlog/weir/shared/httpapi"
)

// timeout limits sending a message, from the look-up of the server's name on.
const timeout = 30 * time.Second

// ErrRefused means that the server will never accept the message.
var ErrRefused = errors.New("the mail server refuses the message")

// A Server accepts messages for any recipient.
type Server struct {
	host    string
	options []gomail.Option
	from    string
}

// ParseServer reads an address such as
// smtp://user:password@mail.example:587, or smtps:// for a server that
// begins with TLS. With smtp, TLS begins if the server offers it, and
// is required with a password. from is the sender, an address or Name
// <address>. No error shows the address, which contains the password.
func ParseServer(address httpapi.Secret, from string, trust *tls.Config) (*Server, error) {
	parsed, err := url.Parse(address.Reveal())
	if err != nil || parsed.Hostname() == "" || parsed.Scheme != "smtp" && parsed.Scheme != "smtps" {
		return nil, errors.New("it is no address such as smtp://user:password@mail.example:587")
	}
	if err := gomail.NewMsg().From(from); err != nil {
		return nil, fmt.Errorf("the sender %q is no mail address", from)
	}
	options, err := optionsOf(parsed)
	if err != nil {
		return nil, err
	}
	if trust != nil {
		trust = trust.Clone()
		trust.ServerName = parsed.Hostname()
		options = append(options, gomail.WithTLSConfig(trust))
	}
	if _, err := gomail.NewClient(parsed.Hostname(), options...); err != nil {
		return nil, errors.New("the mail server can't be used as its address says")
	}
	return &Server{host: parsed.Hostname(), options: options, from: from}, nil
}

func optionsOf(server *url.URL) ([]gomail.Option, error) {
	options := []gomail.Option{gomail.WithTimeout(timeout)}
	port := 587
	if server.Scheme == "smtps" {
		port = 465
		options = append(options, gomail.WithSSL())
	}
	if server.Port() != "" {
		given, err := strconv.Atoi(server.Port())
		if err != nil || given < 1 || given >= 1<<16 {
			return nil, errors.New("its port is none")
		}
		port = given
	}
	options = append(options, gomail.WithPort(port))
	password, authenticated := server.User.Password()
	switch {
	case authenticated:
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(server.User.Username()), gomail.WithPassword(password))
	case server.Scheme == "smtp":
		options = append(options, gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	}
	return options, nil
}

// A Message is for one person.
type Message struct {
	ID      string // of its subject: the same for every attempt
	To      string // address
	Name    string // of the person
	Subject string
	Text    string
	HTML    string
	At      time.Time

	Unsubscribe string // https:// link that unsubscribes its reader with one click; empty: none
}

// Send sends a message. ErrRefused: it will never be accepted; other
// errors are transient.
func (s *Server) Send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	message, err := s.compose(m)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	client, err := gomail.NewClient(s.host, s.options...)
	if err != nil {
		return err
	}
	if err := client.DialAndSendWithContext(ctx, message); err != nil {
		return judge(err)
	}
	return nil
}

func (s *Server) compose(m Message) (*gomail.Msg, error) {
	message := gomail.NewMsg()
	to := mail.Address{Name: m.Name, Address: m.To} // quotes the name
	err := errors.Join(message.From(s.from), message.AddTo(to.String()))
	message.Subject(m.Subject)
	message.SetDateWithValue(m.At)
	message.SetMessageIDWithValue(m.ID + "@weir")
	message.SetGenHeader("Auto-Submitted", "auto-generated") // stops automatic replies
	if m.Unsubscribe != "" {
		err = errors.Join(err, message.SetListUnsubscribeOneClick(m.Unsubscribe))
	}
	message.SetBodyString(gomail.TypeTextPlain, m.Text)
	message.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	return message, err
}

// judge separates lasting errors from transient ones, which a server
// reports for each message.
func judge(err error) error {
	var failed *gomail.SendError
	if errors.As(err, &failed) && !failed.IsTemp() && failed.ErrorCode() >= 500 {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}
