package http

import (
	"context"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ruletext"
	"github.com/weirlog/weir/shared/ruletext/routes"
)

// Rules serves the rules of projects.
type Rules struct {
	Service *rules.Service
	Guard   *identity.Guard
}

func ruling(s *Rules) []openapi.Operation {
	as := func(handle routes.Handler) routes.Handler { return handle }
	api := routes.API[ruleVersionBody, rulesBody]{
		Rules: routes.Rules{Versions: s.Service.Versions, Set: s.Set, Preview: s.preview},
		Path:  "/v1/projects/{project}/ingest-rules", Noun: "IngestRules", Purpose: "by which entries of a project are left out or changed",
		Holds: "They are in force in all replicas about a second later, for entries that come then.",
		Reads: routes.Way{Wrap: as}, Tries: routes.Way{Wrap: written, Headers: repeatableHeaders{}},
		Changes: routes.Way{Wrap: written, Headers: ruleHeaders{}}, Body: setRulesBody{},
		Trial: openapi.Operation{
			Summary:     "What rules would do to the newest entries of a project",
			Description: "Rules are tried on the newest 1,000 entries that are stored, up to 2 MiB of them: they have passed the present rules. Nothing is changed.",
			Body:        openapi.Body{Type: triedRulesBody{}}, Answer: openapi.Answer{Type: rulesPreviewBody{}, Description: "What would be left out or changed"},
		},
		Show: newRuleVersionBody, ShowWhole: func(v ruletext.Version) rulesBody { return rulesBody{newRuleVersionBody(v), v.Text} },
	}
	return api.Operations()
}

type ruleHeaders struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" description:"Not needed with if_version: the same request again then changes nothing more"`
}

type triedRulesBody struct {
	Rules string `json:"rules" maxLength:"16384" description:"One a line, at most 50: drop CONDITION; sample N% by FIELD if CONDITION; redact PATTERNS in FIELDS if CONDITION; set level LEVEL if CONDITION. A condition is a query as of GET /v1/logs. At the end of a line: after the charge. Lines that begin with # are comments"`
}

type setRulesBody struct {
	triedRulesBody
	routes.ChangeBody
}

type ruleVersionBody struct {
	Version int64      `json:"version" description:"0: nobody has set any"`
	SetAt   *time.Time `json:"set_at" description:"null: nobody has set any"`
	routes.AuthorBody
}

type rulesBody struct {
	ruleVersionBody
	Rules string `json:"rules"`
}

func newRuleVersionBody(v ruletext.Version) ruleVersionBody {
	return ruleVersionBody{v.Number, httpapi.TimeOrNull(v.At), routes.NewAuthorBody(v)}
}

// Set sets the rules of a project as a request wishes.
func (s *Rules) Set(r *http.Request, wish ruletext.Wish) (ruletext.Version, error) {
	from := rules.Origin{Request: httpapi.RequestID(r.Context()), Address: httpapi.AddressText(s.Guard.ClientAddress(r)), Client: r.UserAgent()}
	return s.Service.Set(r.Context(), identity.FromContext(r.Context()), from, wish)
}

func (s *Rules) preview(ctx context.Context, who identity.Principal, project, text string) (any, error) {
	made, err := s.Service.Preview(ctx, who, project, text)
	return newRulesPreviewBody(made), err
}

type rulesPreviewBody struct {
	Entries    int        `json:"entries" description:"On how many entries the rules were tried"`
	Kept       int        `json:"kept" description:"How many of them would be kept"`
	Dropped    int64      `json:"dropped" description:"Left out by drop"`
	Sampled    int64      `json:"sampled" description:"Left out by sample"`
	Redacted   int64      `json:"redacted"`
	LevelSet   int64      `json:"level_set"`
	Bytes      int64      `json:"bytes" description:"Of these entries"`
	Charged    int64      `json:"charged_bytes" description:"What would be charged of them"`
	KeptBytes  int64      `json:"kept_bytes"`
	Since      *time.Time `json:"since" description:"When the oldest of the entries was received; null: there are none"`
	Incomplete bool       `json:"incomplete,omitempty" description:"true where time was up before all of them were looked at. Else absent"`

	Rules    []ruleEffectBody  `json:"rules" maxItems:"50" description:"In the order in which they apply"`
	Examples []ruleExampleBody `json:"examples" maxItems:"20"`
}

type ruleEffectBody struct {
	Line    int    `json:"line"`
	Rule    string `json:"rule"`
	Entries int    `json:"entries" description:"How many it would leave out or change"`
}

type ruleExampleBody struct {
	ID     string  `json:"id" description:"Of the entry"`
	Before string  `json:"before" description:"Its text, the first 2 KiB of it"`
	After  *string `json:"after" description:"null: it would not be kept"`
	Lines  []int   `json:"lines" description:"Of the rules that do something to it"`
}

func newRulesPreviewBody(p rules.Preview) rulesPreviewBody {
	body := rulesPreviewBody{
		Entries: p.Entries, Kept: p.Kept, Bytes: p.Bytes, Charged: p.Charged, KeptBytes: p.Left, Incomplete: p.Incomplete,
		Dropped: p.Ruling.Entries[ingest.RuleDrop], Sampled: p.Ruling.Entries[ingest.RuleSample],
		Redacted: p.Ruling.Entries[ingest.RuleRedact], LevelSet: p.Ruling.Entries[ingest.RuleSetLevel],
		Rules: []ruleEffectBody{}, Examples: []ruleExampleBody{},
	}
	if !p.Oldest.IsZero() {
		since := p.Oldest.UTC()
		body.Since = &since
	}
	for _, rule := range p.Rules {
		body.Rules = append(body.Rules, ruleEffectBody{rule.Line, rule.Text, rule.Entries})
	}
	for _, e := range p.Examples {
		id := hex.EncodeToString(e.Place.Batch[:]) + "-" + strconv.Itoa(e.Place.Index)
		body.Examples = append(body.Examples, ruleExampleBody{id, e.Before, httpapi.OrNull(e.After), e.Lines})
	}
	return body
}
