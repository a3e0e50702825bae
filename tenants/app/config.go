package app

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/leak"
	"github.com/weirlog/weir/tenants/internal/mail"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/passkey"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// Config is what tenants needs to run.
type Config struct {
	service.Config `embed:""`

	OperatorToken httpapi.Secret `help:"The operator's token: weirsvc_ and 48 hex digits. A new one revokes the one before." env:"WEIR_OPERATOR_TOKEN"`

	ConsoleOrigin string `help:"Origin under which people reach the console, such as https://weir.example; passkeys belong to its host. Empty: https://localhost and the port of the listener." env:"WEIR_CONSOLE_ORIGIN"`

	ConsoleCAFile string `help:"File of the certificate authority that the console's examples of sending logs name, as its users have it. Empty: the certificate is publicly trusted." env:"WEIR_CONSOLE_CA_FILE"`

	Bounds BoundsConfig `embed:""`

	OIDC OIDCConfig `embed:"" prefix:"oidc-"`

	Webhooks WebhookConfig `embed:"" prefix:"webhook-"`

	Mail MailConfig `embed:"" prefix:"smtp-"`

	KeptConfig `embed:""`

	InForceWait time.Duration `help:"How long an answer may wait for a new or revoked credential to be in force." env:"WEIR_IN_FORCE_WAIT" default:"1s"`

	Leaks LeakConfig `embed:"" prefix:"leak-"`

	Output io.Writer `kong:"-"` // gets the link for the first owner; nil: no link

	TestConfig `kong:"-"`
}

// TestConfig is what only tests set, so that there are no settings.
type TestConfig struct {
	CompareInterval time.Duration // between comparisons of topics and tables; 0: 10 min
	CheapPasswords  bool          // password hashes cost next to nothing
}

// KeptConfig is how long what is past, or deleted, is kept.
type KeptConfig struct {
	AuditDays     int           `help:"For how many days the audit keeps a line." env:"WEIR_AUDIT_DAYS" default:"400"`
	DeletionGrace time.Duration `help:"How long a deletion of an organization or project can be cancelled before anything is erased, at most 90 days; 0: it begins at once." env:"WEIR_DELETION_GRACE" default:"0s"`
}

func (c KeptConfig) validate() error {
	var errs []error
	if c.AuditDays != 0 && c.AuditDays < minAuditDays {
		errs = append(errs, fmt.Errorf("WEIR_AUDIT_DAYS is %d: the audit keeps lines for at least %d days", c.AuditDays, minAuditDays))
	}
	if c.DeletionGrace < 0 || c.DeletionGrace > tenants.MaxDeletionGrace {
		errs = append(errs, fmt.Errorf("WEIR_DELETION_GRACE is %s: use 0 to %s", c.DeletionGrace, tenants.MaxDeletionGrace))
	}
	return errors.Join(errs...)
}

// auditDays is the default: a year, and some time to review it.
const auditDays = 400

// minAuditDays is longer than anything in the audit is under way.
const minAuditDays = 30

func (c KeptConfig) auditKept() time.Duration {
	return time.Duration(cmp.Or(c.AuditDays, auditDays)) * 24 * time.Hour
}

// LeakConfig is whether reports of leaked API keys are taken, and who signs them.
type LeakConfig struct {
	Reports  bool   `help:"Take reports of leaked API keys at /v1/leak-reports, signed as GitHub's secret scanning signs them." env:"WEIR_LEAK_REPORTS"`
	KeysURL  string `help:"Where the keys are published that leak reports are signed with." env:"WEIR_LEAK_KEYS_URL" default:"https://api.github.com/meta/public_keys/secret_scanning"`
	KeysFile string `help:"File with these keys, in the same form, instead of the address." env:"WEIR_LEAK_KEYS_FILE"`
}

func (c LeakConfig) validate() error {
	if u, err := url.Parse(c.KeysURL); c.KeysURL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		return fmt.Errorf("WEIR_LEAK_KEYS_URL is %q: use an address such as %s", c.KeysURL, leak.GitHubKeys)
	}
	return nil
}

// keys are those that sign reports; nil: reports are not accepted.
func (c LeakConfig) keys(clock func() time.Time) (*leak.Keys, error) {
	switch {
	case !c.Reports:
		return nil, nil
	case c.KeysFile != "":
		return leak.ReadKeys(c.KeysFile)
	}
	return leak.FetchKeys(cmp.Or(c.KeysURL, leak.GitHubKeys), clock), nil
}

// Validate joins all faults of the configuration. It shows no secret.
func (c Config) Validate() error {
	errs := []error{c.Config.Validate()}
	if c.InForceWait < 0 {
		errs = append(errs, fmt.Errorf("WEIR_IN_FORCE_WAIT is %s: it can't be negative", c.InForceWait))
	}
	if _, err := c.origin(); err != nil {
		errs = append(errs, err)
	}
	if _, err := c.operator(); c.OperatorToken != "" && err != nil {
		errs = append(errs, fmt.Errorf("WEIR_OPERATOR_TOKEN is no service token: %w", err))
	}
	errs = append(errs, c.KeptConfig.validate(), c.Leaks.validate(), c.Bounds.validate(), c.Webhooks.validate(), c.Mail.validate())
	origin, err := c.origin()
	return errors.Join(append(errs, err, c.OIDC.validate(origin))...)
}

func (c Config) passwordCost() password.Cost {
	if c.CheapPasswords {
		return password.ForTests()
	}
	return password.Slow()
}

func (c Config) operator() (tenants.Secret, error) {
	return tenants.ParseSecret(tenants.ServiceTokenPrefix, c.OperatorToken.Reveal())
}

// BoundsConfig bounds what an organization may have, as every
// process holds all of it in memory. A lower limit removes nothing.
type BoundsConfig struct {
	MaxProjects      int `help:"How many projects an organization may have; three times as many with those that were deleted in the last 30 days." env:"WEIR_MAX_PROJECTS" default:"200"`
	MaxAPIKeys       int `help:"How many API keys of an organization may be in force; three times as many with those that ended in the last 30 days." env:"WEIR_MAX_API_KEYS" default:"1000"`
	MaxServiceTokens int `help:"How many service tokens of an organization may be in force; three times as many with those that ended in the last 30 days." env:"WEIR_MAX_SERVICE_TOKENS" default:"100"`
	MaxMembers       int `help:"How many members an organization may have." env:"WEIR_MAX_MEMBERS" default:"500"`
	MaxInvitations   int `help:"How many invitations of an organization may be open." env:"WEIR_MAX_INVITATIONS" default:"200"`
	MaxSessions      int `help:"How many sessions a member may have open; the oldest ends." env:"WEIR_MAX_SESSIONS" default:"20"`
	MaxWebhooks      int `help:"How many webhooks an organization may have, 1000 at most." env:"WEIR_MAX_WEBHOOKS" default:"20"`

	ChangesPerMinute int `help:"How many changes a minute, such as creating projects and keys, an organization's tokens may make, and its members; operators fifty times as many." env:"WEIR_CHANGES_PER_MINUTE" default:"120"`
}

// changes is how many changes a minute an organization may make.
func (c BoundsConfig) changes() int { return cmp.Or(c.ChangesPerMinute, defaultChanges) }

const defaultChanges = 120

func (c BoundsConfig) limits() tenants.Limits {
	return tenants.Limits{
		Projects: c.MaxProjects, APIKeys: c.MaxAPIKeys, ServiceTokens: c.MaxServiceTokens, Members: c.MaxMembers,
		Invitations: c.MaxInvitations, Sessions: c.MaxSessions, Webhooks: c.MaxWebhooks,
	}.OrDefault()
}

// validate joins all faults. 0 is the default.
func (c BoundsConfig) validate() error {
	var errs []error
	for setting, value := range map[string]int{
		"WEIR_MAX_PROJECTS": c.MaxProjects, "WEIR_MAX_API_KEYS": c.MaxAPIKeys, "WEIR_MAX_SERVICE_TOKENS": c.MaxServiceTokens,
		"WEIR_MAX_MEMBERS": c.MaxMembers, "WEIR_MAX_INVITATIONS": c.MaxInvitations, "WEIR_MAX_SESSIONS": c.MaxSessions,
		"WEIR_MAX_WEBHOOKS":       c.MaxWebhooks,
		"WEIR_CHANGES_PER_MINUTE": c.ChangesPerMinute,
	} {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d: it can't be negative", setting, value))
		}
	}
	if c.MaxWebhooks > identity.MaxWebhooks {
		errs = append(errs, fmt.Errorf("WEIR_MAX_WEBHOOKS is %d: it can't be more than %d", c.MaxWebhooks, identity.MaxWebhooks))
	}
	return errors.Join(errs...)
}

// OIDCConfig is the identity provider by which
// members may sign in, beside passwords and passkeys.
type OIDCConfig struct {
	Issuer       string         `help:"Address of an identity provider (OpenID Connect) that signs members in, the first time by their verified e-mail address. Empty: none." env:"WEIR_OIDC_ISSUER"`
	ClientID     string         `help:"Client id of this installation at the identity provider." env:"WEIR_OIDC_CLIENT_ID"`
	ClientSecret httpapi.Secret `help:"Client secret of this installation at the identity provider." env:"WEIR_OIDC_CLIENT_SECRET"`
	Name         string         `help:"Name of the identity provider, for people." env:"WEIR_OIDC_NAME" default:"your identity provider"`
}

func (c OIDCConfig) validate(origin string) error {
	if c.Issuer == "" {
		return nil
	}
	var errs []error
	if !secureAddress(c.Issuer) {
		errs = append(errs, fmt.Errorf("WEIR_OIDC_ISSUER is %q: use an address that begins with https://", c.Issuer))
	}
	if c.ClientID == "" {
		errs = append(errs, errors.New("WEIR_OIDC_CLIENT_ID is empty: use the client id that the identity provider gave this installation"))
	}
	if c.ClientSecret == "" {
		errs = append(errs, errors.New("WEIR_OIDC_CLIENT_SECRET is empty: use the client secret that the identity provider gave this installation"))
	}
	if origin == "" {
		errs = append(errs, errors.New("WEIR_OIDC_ISSUER needs WEIR_CONSOLE_ORIGIN: the identity provider sends people back there"))
	}
	return errors.Join(errs...)
}

// secureAddress reports whether an address is https, or of this machine.
func secureAddress(text string) bool {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" {
		return false
	}
	address, err := netip.ParseAddr(parsed.Hostname())
	return parsed.Scheme == "https" || parsed.Scheme == "http" && err == nil && address.IsLoopback()
}

// provider is the identity provider, nil where there is none.
func (c Config) provider(clock func() time.Time) (*oidc.Provider, error) {
	if c.OIDC.Issuer == "" {
		return nil, nil //nolint:nilnil // none is not wrong
	}
	origin, err := c.origin()
	if err != nil {
		return nil, err
	}
	return oidc.New(oidc.Config{
		Issuer: c.OIDC.Issuer, ClientID: c.OIDC.ClientID, ClientSecret: c.OIDC.ClientSecret, Name: c.OIDC.Name,
		Redirect: origin + signin.OIDCCallbackPath, Clock: clock,
	}), nil
}

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
func (c Config) mailer(links *mail.Links) (*notifications.Mailer, error) {
	server, err := c.Mail.server()
	if server == nil || err != nil {
		return nil, err
	}
	return &notifications.Mailer{Server: server, Origin: c.linkOrigin(), Links: links}, nil
}

// origin is the console's origin, such as https://weir.example; empty if not
// configured. It does not come from the Host header, which can be forged.
func (c Config) origin() (string, error) {
	if c.ConsoleOrigin == "" {
		return c.localOrigin(), nil
	}
	parsed, err := url.Parse(c.ConsoleOrigin)
	bare := err == nil && parsed.Scheme == "https" && parsed.Hostname() != "" && strings.Trim(parsed.Path, "/") == "" &&
		parsed.User == nil && parsed.RawQuery == "" && parsed.Fragment == ""
	if !bare {
		return "", fmt.Errorf("WEIR_CONSOLE_ORIGIN is %q: use https:// and the host of the console, such as https://weir.example", c.ConsoleOrigin)
	}
	return "https://" + strings.ToLower(parsed.Host), nil
}

// linkOrigin is the origin of links and examples.
func (c Config) linkOrigin() string {
	origin, err := c.origin()
	if err != nil { // Validate has refused it
		return DefaultOrigin
	}
	return cmp.Or(origin, DefaultOrigin)
}

// localOrigin is the listener's address for a user of the same machine.
func (c Config) localOrigin() string {
	_, port, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil || port == "" || port == "0":
		return ""
	case port == "443":
		return "https://localhost"
	}
	return "https://localhost:" + port
}

// relyingParty is the site that passkeys belong to; nil: there can't be any.
func (c Config) relyingParty(logger *slog.Logger) *passkey.RelyingParty {
	origin, err := c.origin()
	if err != nil || origin == "" {
		logger.Info("passkeys are off: the console's origin is not configured", slog.String("setting", "WEIR_CONSOLE_ORIGIN"))
		return nil
	}
	party, err := passkey.New(origin)
	if err != nil {
		logger.Warn("passkeys are off", slog.String("error", err.Error()))
		return nil
	}
	return party
}

// deletionsKnownSince is since when deletions are known:
// as long as the audit keeps lines of organizations.
func (c Config) deletionsKnownSince(clock func() time.Time) func() time.Time {
	known := c.Deletions.Since(clock)
	return func() time.Time { return calendar.Earlier(known(), clock().Add(-c.auditKept())) }
}

// WebhookConfig is the keys that sign webhooks,
// and the private networks they may reach.
type WebhookConfig struct {
	Keys     httpapi.Secret `help:"Keys that the secrets of webhooks follow from, each of 64 hexadecimal characters (openssl rand -hex 32), with commas between them: the first makes new secrets, the others those of webhooks from when they were first. Empty: there are no webhooks." env:"WEIR_WEBHOOK_KEYS"`
	Networks []string       `help:"Networks beside the public one that webhooks may reach, by any port and without TLS, such as 10.20.0.0/16. For development, and for receivers of one's own." env:"WEIR_WEBHOOK_NETWORKS"`
	CAFile   string         `help:"File with certificates of authorities, in PEM, that webhooks trust beside the system's." env:"WEIR_WEBHOOK_CA_FILE"`
}

func (c WebhookConfig) validate() error {
	_, keys := c.keys()
	_, networks := c.networks()
	return errors.Join(keys, networks)
}

func (c WebhookConfig) keys() (webhook.Keys, error) {
	keys, err := webhook.ParseKeys(c.Keys)
	if err != nil {
		return keys, fmt.Errorf("WEIR_WEBHOOK_KEYS: %w", err)
	}
	return keys, nil
}

func (c WebhookConfig) networks() (networks []netip.Prefix, err error) {
	for _, text := range c.Networks {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("WEIR_WEBHOOK_NETWORKS has %q: use networks such as 10.20.0.0/16", text)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

func (c WebhookConfig) roots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil //nolint:nilnil // the system's
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read WEIR_WEBHOOK_CA_FILE: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("WEIR_WEBHOOK_CA_FILE %q has no certificate", c.CAFile)
	}
	return roots, nil
}

func (c WebhookConfig) client() (*webhook.Client, error) {
	networks, err := c.networks()
	if err != nil {
		return nil, err
	}
	roots, err := c.roots()
	if err != nil {
		return nil, err
	}
	return webhook.NewClient(webhook.Config{Networks: networks, Roots: roots}), nil
}
