package app

import (
	"fmt"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants/internal/mail"
	"github.com/weirlog/weir/tenants/internal/notifications"
)

// MailConfig is the server for mail to members.
type MailConfig struct {
	URL  httpapi.Secret `help:"Mail server, such as smtp://user:password@mail.example:587, or smtps:// where it begins with TLS. Empty: no mail is sent, and the console says so." env:"WEIR_SMTP_URL"`
	From string         `help:"Sender of mail, such as Weir <weir@example.com>." env:"WEIR_SMTP_FROM"`
}

func (c MailConfig) validate() error {
	_, err := c.server()
	return err
}

// configured reports whether mail is sent.
func (c MailConfig) configured() bool { return c.URL != "" }

// server is the mail server, nil where there is none.
func (c MailConfig) server() (*mail.Server, error) {
	if !c.configured() {
		return nil, nil //nolint:nilnil // none is not wrong
	}
	server, err := mail.ParseServer(c.URL, c.From, nil)
	if err != nil {
		return nil, fmt.Errorf("WEIR_SMTP_URL or WEIR_SMTP_FROM: %w", err)
	}
	return server, nil
}

// mailer sends mail to members; nil: none is sent.
func (a *App) mailer() (*notifications.Mailer, error) {
	server, err := a.config.Mail.server()
	if server == nil || err != nil {
		return nil, err
	}
	return &notifications.Mailer{Server: server, Origin: a.linkOrigin(), Links: a.unsubscribe}, nil
}
