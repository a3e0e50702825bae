package identity

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/tracing"
)

// GuardConfig configures a Guard. Ready, Used and Metrics may be nil.
type GuardConfig struct {
	Credentials *Credentials
	Ready       func() error // nil once all data to judge requests is read; without it, at once
	Limits      Limits
	Proxies     []netip.Prefix // whose X-Forwarded-For is trusted
	Clock       func() time.Time
	Metrics     prometheus.Registerer

	// Used gets each request with a known API key, valid or ended. It
	// must not wait.
	Used func(r *http.Request, who Principal, use Use)
}

// A Use is the outcome of a request with an API key.
type Use int

// The uses.
const (
	Admitted Use = iota // admitted
	Refused             // refused, though the key is valid
	Ended               // refused: the key was revoked or has expired
)

// A Guard authenticates every route that needs a caller. It answers 500
// until the credentials are read, then finds the caller, and counts the
// request against the limits. All routes of a module share one guard
// and its limits. Safe for concurrent use.
type Guard struct {
	credentials *Credentials
	ready       func() error
	limiter     *limiter
	proxies     []netip.Prefix
	clock       func() time.Time
	used        func(r *http.Request, who Principal, use Use)
	refused     *prometheus.CounterVec
	refusals    *httpapi.Refusals
}

// NewGuard returns a guard without any counts.
func NewGuard(config GuardConfig) *Guard {
	g := &Guard{
		credentials: config.Credentials, ready: config.Ready, limiter: newLimiter(config.Limits), proxies: config.Proxies, clock: config.Clock,
		used: config.Used, refusals: httpapi.NewRefusals(),
	}
	if g.ready == nil {
		g.ready = func() error { return nil }
	}
	if g.used == nil {
		g.used = func(*http.Request, Principal, Use) {}
	}
	g.measure(config.Metrics)
	return g
}

func (g *Guard) measure(registerer prometheus.Registerer) {
	metrics := promauto.With(registerer)
	g.refused = metrics.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_auth_refused_total",
		Help: "Requests that were refused before they were looked at: starting, credential, scope, access, rate (of who is known), client (of who is not).",
	}, []string{"reason"})
	for of, buckets := range map[string]func() int{"callers": g.limiter.callers.Len, "networks": g.limiter.networks.Len} {
		metrics.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_auth_rate_buckets", Help: "Rate limits of reads that are held in memory.", ConstLabels: prometheus.Labels{"of": of},
		}, func() float64 { return float64(buckets()) })
	}
}

// RequireAPIKey passes a request with a valid API key in x-api-key. It
// refuses a key that may only write, as the guarded routes read.
func (g *Guard) RequireAPIKey() func(http.Handler) http.Handler {
	return g.require(g.apiKey, func(key Principal) error {
		if !key.ReadsNothing() {
			return nil
		}
		g.count("access")
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			`The API key may only send logs: its access is "write". Use a key that may read, or change the access of this one under API Keys.`)
	})
}

// RequireScope passes a request with a valid service token that has
// scope, or one of the others that include it.
func (g *Guard) RequireScope(scope string, others ...string) func(http.Handler) http.Handler {
	authenticate := func(r *http.Request) (Principal, error) { return bearer(g.credentials, r) }
	return g.require(authenticate, func(token Principal) error {
		if token.Has(scope) || slices.ContainsFunc(others, token.Has) {
			return nil
		}
		g.count("scope")
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden, fmt.Sprintf("The service token lacks the scope %q.", scope))
	})
}

func (g *Guard) apiKey(r *http.Request) (Principal, error) {
	secret, err := APIKeyOf(r.Header)
	if err != nil {
		return Principal{}, err
	}
	who, err := APIKey(g.credentials, secret)
	if err != nil {
		if holder, ended := g.credentials.Ended(secret); ended {
			g.used(r, holder, Ended)
		}
	}
	return who, err
}

// require passes requests that authenticate, within their limits,
// unless permit refuses them.
func (g *Guard) require(authenticate func(*http.Request) (Principal, error), permit func(Principal) error) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error {
			if err := g.Ready(); err != nil {
				return err
			}
			_, span := tracing.Start(r.Context(), "authenticate")
			who, err := authenticate(r)
			tracing.End(span, err)
			if err != nil {
				err = g.unknown(r, err)
			} else {
				err = g.enter(w, r, who, permit)
			}
			if err != nil {
				g.refusals.Pace(r.Context(), g.clock(), g.network(r), err)
				return err
			}
			tracing.SetOrganization(r.Context(), who.Organization)
			next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), who)))
			return nil
		})
	}
}

// Holds reports whether the credential of a passed request still gives what
// it gave then: an answer that lasts has to end if not. It counts nothing.
func (g *Guard) Holds(r *http.Request) bool {
	was, secret := FromContext(r.Context()), r.Header.Get("X-Api-Key")
	if was.Kind == contract.CredentialSession {
		cookie, err := r.Cookie(SessionCookie)
		if err != nil {
			return false
		}
		secret = cookie.Value
	}
	now, err := g.credentials.Lookup(secret)
	if isProblem(err) {
		return true // it is not known for the moment
	}
	return err == nil && now.Access == was.Access && now.Project == was.Project && slices.Equal(now.Scopes, was.Scopes)
}

// Ready returns nil once requests can be judged; else a 500: a 401
// would be wrong, and make clients give up.
func (g *Guard) Ready() error {
	err := g.ready()
	if err == nil {
		return nil
	}
	g.count("starting")
	return httpapi.Starting(err)
}

// unknown returns the refusal of an invalid credential, for the reason
// err, or of too many attempts.
func (g *Guard) unknown(r *http.Request, err error) error {
	if problem, is := errors.AsType[*httpapi.Problem](err); is && problem.Status >= http.StatusInternalServerError {
		g.count("starting")
		return err
	}
	if tried := g.limiter.networks.Take(g.clock(), g.limiter.ofNetwork(g.network(r))); !tried.Allowed {
		return g.tooManyTries(tried)
	}
	g.count("credential")
	return err
}

func (g *Guard) tooManyTries(tried fairshare.Result) error {
	g.count("client")
	return httpapi.RateLimited(tried, "address without a valid credential")
}

// ClientAddress returns where a request comes from.
func (g *Guard) ClientAddress(r *http.Request) netip.Addr { return httpapi.ClientAddress(r, g.proxies) }

func (g *Guard) network(r *http.Request) netip.Prefix {
	return httpapi.ClientNetwork(g.ClientAddress(r))
}

// enter counts a request of who, once for each request however many
// guards it passes, and calls permit.
func (g *Guard) enter(w http.ResponseWriter, r *http.Request, who Principal, permit func(Principal) error) (err error) {
	if known, again := PrincipalOf(r.Context()); !again || known.ID != who.ID {
		err = g.take(w.Header(), who)
		defer func() { g.note(r, who, err) }()
	}
	if err == nil && permit != nil {
		err = permit(who)
	}
	return err
}

// note reports the use of an API key.
func (g *Guard) note(r *http.Request, who Principal, err error) {
	switch {
	case who.Kind != contract.CredentialAPIKey:
	case err != nil:
		g.used(r, who, Refused)
	default:
		g.used(r, who, Admitted)
	}
}

// take takes a token from each of the levels of who, and sets the headers.
func (g *Guard) take(header http.Header, who Principal) error {
	now, levels := g.clock(), g.limiter.levels(who)
	result := g.limiter.callers.Take(now, levels...)
	httpapi.SetRateLimit(header, result)
	policies := make([]byte, 0, 96)
	for _, level := range levels {
		policies = httpapi.AppendPolicy(policies, level.Scope, level.PerMinute)
	}
	header.Set("RateLimit-Policy", string(policies))
	header.Set("RateLimit", string(httpapi.AppendRateLimit(make([]byte, 0, 48), result, now)))
	if !result.Allowed {
		g.count("rate")
		return limited(result, who)
	}
	return nil
}

func (g *Guard) count(reason string) { g.refused.WithLabelValues(reason).Inc() }

// isProblem reports whether an error already is an answer.
func isProblem(err error) bool {
	var problem *httpapi.Problem
	return errors.As(err, &problem)
}

// Prefixes by which secret scanners and people recognize credentials.
const (
	APIKeyPrefix       = "weir_"
	ServiceTokenPrefix = "weirsvc_"
)

// secretDigits is how many hexadecimal characters follow a prefix: 192 random bits.
const secretDigits = 48

// WellFormed reports whether secret is prefix and 48 lower-case
// hexadecimal characters.
func WellFormed(prefix, secret string) bool {
	digits, ok := strings.CutPrefix(secret, prefix)
	return ok && len(digits) == secretDigits && strings.Trim(digits, "0123456789abcdef") == ""
}

// APIKeyOf returns the API key of a request; "": it has none. One that came
// as a bearer token is refused with the way out.
func APIKeyOf(header http.Header) (string, error) {
	key, err := httpapi.OneHeader(header, "X-Api-Key")
	if err != nil || key != "" {
		return key, err
	}
	if _, token, _ := strings.Cut(header.Get("Authorization"), " "); strings.HasPrefix(token, APIKeyPrefix) {
		return "", unauthorized("ApiKey", "missing_api_key", "The API key came in the header Authorization. Send it in the header x-api-key, without Bearer.")
	}
	return "", nil
}

// APIKey returns the holder of an API key, or the 401 with the reason:
// the same for an unknown key and a malformed one.
func APIKey(credentials *Credentials, key string) (Principal, error) {
	if key == "" {
		return Principal{}, unauthorized("ApiKey", "missing_api_key", "There is no API key. Send it in the header x-api-key.")
	}
	principal, err := lookup(credentials, APIKeyPrefix, contract.CredentialAPIKey, key)
	switch {
	case isProblem(err):
		return Principal{}, err
	case errors.Is(err, ErrRevoked):
		return Principal{}, unauthorized("ApiKey", "api_key_revoked", "The API key was revoked. Create a new one under API Keys.")
	case errors.Is(err, ErrExpired):
		return Principal{}, unauthorized("ApiKey", "api_key_expired", "The API key has expired. Create a new one under API Keys.")
	case err != nil:
		return Principal{}, unauthorized("ApiKey", "invalid_api_key", "The API key is not valid. Check that it was copied whole.")
	}
	return principal, nil
}

func bearer(credentials *Credentials, r *http.Request) (Principal, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Principal{}, unauthorized("Bearer", "missing_token",
			"There is no service token. Send it in the header Authorization: Bearer weirsvc_….")
	}
	principal, err := lookup(credentials, ServiceTokenPrefix, contract.CredentialServiceToken, strings.TrimSpace(token))
	if isProblem(err) {
		return Principal{}, err
	}
	if err != nil {
		return Principal{}, unauthorized("Bearer", "invalid_token", "The service token is not valid, was revoked or has expired.")
	}
	return principal, nil
}

// lookup takes as long for a malformed secret as for an unknown one.
func lookup(credentials *Credentials, prefix, kind, secret string) (Principal, error) {
	principal, err := credentials.Lookup(secret)
	if err == nil && (principal.Kind != kind || !WellFormed(prefix, secret)) {
		return Principal{}, ErrUnknown
	}
	return principal, err
}

func unauthorized(scheme, code, detail string) *httpapi.Problem {
	return httpapi.NewProblem(http.StatusUnauthorized, code, detail).WithHeader("WWW-Authenticate", scheme)
}

// Limits are rate limits. Embed them in a service's configuration. They
// apply to all but POST /v1/logs, which the tier limits.
type Limits struct {
	ReadsPerMinute     int `help:"Reads and administrative requests per minute and organization, and of each operator's token. POST /v1/logs is limited by the tier instead." env:"WEIR_READS_PER_MINUTE" default:"3000"`
	AnonymousPerMinute int `help:"Such requests without a valid credential per minute and client network." env:"WEIR_ANONYMOUS_PER_MINUTE" default:"300"`
}

// Defaults for zero.
const (
	defaultReads     = 3000
	defaultAnonymous = 300
)

// Limits of buckets in memory: for organizations, projects and
// credentials, and for client networks.
const (
	maxCallers  = 1 << 16
	maxNetworks = 1 << 16
)

// Validate joins what is wrong with the limits.
func (l Limits) Validate() error {
	var errs []error
	if l.ReadsPerMinute < 0 {
		errs = append(errs, fmt.Errorf("WEIR_READS_PER_MINUTE is %d: it can't be negative", l.ReadsPerMinute))
	}
	if l.AnonymousPerMinute < 0 {
		errs = append(errs, fmt.Errorf("WEIR_ANONYMOUS_PER_MINUTE is %d: it can't be negative", l.AnonymousPerMinute))
	}
	return errors.Join(errs...)
}

// A limiter counts requests. Its tables are bounded: see fairshare.Table.
type limiter struct {
	reads, anonymous int // per minute
	callers          *fairshare.Table[caller]
	networks         *fairshare.Table[netip.Prefix]
}

// A caller owns a bucket: an organization, a project or a credential.
type caller struct{ kind, id string }

func newLimiter(limits Limits) *limiter {
	return &limiter{
		reads: cmp.Or(limits.ReadsPerMinute, defaultReads), anonymous: cmp.Or(limits.AnonymousPerMinute, defaultAnonymous),
		callers: fairshare.NewTable[caller](maxCallers), networks: fairshare.NewTable[netip.Prefix](maxNetworks),
	}
}

// levels returns the buckets of a request. An operator, without
// organization, has its own bucket.
func (l *limiter) levels(who Principal) []fairshare.KeyLimit[caller] {
	own := l.reads
	if who.RatePerMinute > 0 {
		own = min(own, who.RatePerMinute)
	}
	levels := make([]fairshare.KeyLimit[caller], 0, 3)
	if who.Organization != "" {
		levels = append(levels, fairshare.KeyLimit[caller]{Scope: fairshare.ScopeOrganization, Key: caller{"organization", who.Organization}, PerMinute: l.reads})
	}
	if who.Project != "" {
		levels = append(levels, fairshare.KeyLimit[caller]{Scope: fairshare.ScopeProject, Key: caller{"project", who.Project}, PerMinute: l.reads})
	}
	return append(levels, fairshare.KeyLimit[caller]{Scope: fairshare.ScopeKey, Key: caller{who.Kind, who.ID}, PerMinute: own})
}

// ofNetwork returns the bucket of a client network.
func (l *limiter) ofNetwork(network netip.Prefix) fairshare.KeyLimit[netip.Prefix] {
	return fairshare.KeyLimit[netip.Prefix]{Scope: fairshare.ScopeClient, Key: network, PerMinute: l.anonymous}
}

// limited returns the 429 for too many requests.
func limited(result fairshare.Result, who Principal) *httpapi.Problem {
	subject := string(result.Scope)
	if result.Scope == fairshare.ScopeKey {
		subject = map[string]string{
			contract.CredentialAPIKey: "API key", contract.CredentialServiceToken: "service token", contract.CredentialSession: "session",
		}[who.Kind]
	}
	return httpapi.RateLimited(result, subject)
}
