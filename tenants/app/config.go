package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/leak"
	"github.com/weirlog/weir/tenants/internal/password"
)

// Config is what tenants needs to run.
type Config struct {
	service.Config `embed:""`

	OperatorToken httpapi.Secret `help:"The operator's token: weirsvc_ and 48 hex digits. A new one revokes the one before." env:"WEIR_OPERATOR_TOKEN"`

	ConsoleOrigin string `help:"Origin under which people reach the console, such as https://weir.example; passkeys belong to its host. Empty: https://localhost and the port of the listener." env:"WEIR_CONSOLE_ORIGIN"`

	Bounds BoundsConfig `embed:""`

	OIDC OIDCConfig `embed:"" prefix:"oidc-"`

	Webhooks WebhookConfig `embed:"" prefix:"webhook-"`

	Mail MailConfig `embed:"" prefix:"smtp-"`

	AuditDays int `help:"For how many days the audit keeps a line." env:"WEIR_AUDIT_DAYS" default:"400"`

	InForceWait time.Duration `help:"How long an answer may wait for a new or revoked credential to be in force." env:"WEIR_IN_FORCE_WAIT" default:"1s"`

	DeletionGrace time.Duration `help:"How long a deletion of an organization or project can be cancelled before anything is erased, at most 90 days; 0: it begins at once." env:"WEIR_DELETION_GRACE" default:"0s"`

	LeakReports  bool   `help:"Take reports of leaked API keys at /v1/leak-reports, signed as GitHub's secret scanning signs them." env:"WEIR_LEAK_REPORTS"`
	LeakKeysURL  string `help:"Where the keys are published that leak reports are signed with." env:"WEIR_LEAK_KEYS_URL" default:"https://api.github.com/meta/public_keys/secret_scanning"`
	LeakKeysFile string `help:"File with these keys, in the same form, instead of the address." env:"WEIR_LEAK_KEYS_FILE"`

	Output io.Writer `kong:"-"` // gets the link for the first owner; nil: no link

	CompareInterval time.Duration `kong:"-"` // between comparisons of topics and tables; 0: 10 min

	CheapPasswords bool `kong:"-"` // password hashes cost next to nothing; only for tests, so there is no setting
}

// Validate joins all faults of the configuration. It shows no secret.
func (c Config) Validate() error {
	errs := []error{c.Config.Validate()}
	if c.AuditDays != 0 && c.AuditDays < minAuditDays {
		errs = append(errs, fmt.Errorf("WEIR_AUDIT_DAYS is %d: the audit keeps lines for at least %d days", c.AuditDays, minAuditDays))
	}
	if c.InForceWait < 0 {
		errs = append(errs, fmt.Errorf("WEIR_IN_FORCE_WAIT is %s: it can't be negative", c.InForceWait))
	}
	if c.DeletionGrace < 0 || c.DeletionGrace > tenants.MaxDeletionGrace {
		errs = append(errs, fmt.Errorf("WEIR_DELETION_GRACE is %s: use 0 to %s", c.DeletionGrace, tenants.MaxDeletionGrace))
	}
	if u, err := url.Parse(c.LeakKeysURL); c.LeakKeysURL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		errs = append(errs, fmt.Errorf("WEIR_LEAK_KEYS_URL is %q: use an address such as %s", c.LeakKeysURL, leak.GitHubKeys))
	}
	if _, err := c.origin(); err != nil {
		errs = append(errs, err)
	}
	if _, err := c.operator(); c.OperatorToken != "" && err != nil {
		errs = append(errs, fmt.Errorf("WEIR_OPERATOR_TOKEN is no service token: %w", err))
	}
	errs = append(errs, c.Bounds.validate(), c.Webhooks.validate(), c.Mail.validate())
	origin, err := c.origin()
	return errors.Join(append(errs, err, c.OIDC.validate(origin))...)
}

// leakKeys are the keys that sign leak
// reports; nil: reports are not accepted.
func (c Config) leakKeys(clock func() time.Time) (*leak.Keys, error) {
	switch {
	case !c.LeakReports:
		return nil, nil
	case c.LeakKeysFile != "":
		return leak.ReadKeys(c.LeakKeysFile)
	}
	return leak.FetchKeys(cmp.Or(c.LeakKeysURL, leak.GitHubKeys), clock), nil
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
