package http

import (
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

// Rules serves the rules of projects.
type Rules struct {
	Service *rules.Service
	Guard   *identity.Guard
}

func ruling(s *Rules) []openapi.Operation {
	const path = "/v1/projects/{project}/ingest-rules"
	missing := map[int]string{http.StatusNotFound: "There is no such project in the key's organization, or no such version"}
	changed := map[int]string{
		http.StatusNotFound:  missing[http.StatusNotFound],
		http.StatusForbidden: "forbidden: the key does not read the whole organization (access full)",
		http.StatusConflict:  "version_conflict: somebody changed the rules meanwhile; version is their present one",
	}
	return []openapi.Operation{
		{
			Route: "GET " + path, Handle: s.newest, ID: "getIngestRules", Summary: "The rules by which entries of a project are left out or changed",
			Query: struct{}{}, Answer: openapi.Answer{Type: rulesBody{}, Description: "The newest version"}, Problems: missing,
		},
		{
			Route: "PUT " + path, Handle: written(s.set), ID: "setIngestRules", Summary: "Set the rules by which entries of a project are left out or changed",
			Description: "They are in force in all replicas about a second later, for entries that come then. The same rules again change nothing. " +
				"A fault names its line and character.",
			Headers: repeatableHeaders{}, Query: struct{}{}, Body: openapi.Body{Type: setRulesBody{}},
			Answer: openapi.Answer{Type: rulesBody{}, Description: "The newest version"}, Problems: changed,
		},
		{
			Route: "POST " + path + "/preview", Handle: written(s.preview), ID: "previewIngestRules", Summary: "What rules would do to the newest entries of a project",
			Description: "Rules are tried on the newest 1,000 entries that are stored, up to 2 MiB of them: they have passed the present rules. Nothing is changed.",
			Headers:     repeatableHeaders{}, Query: struct{}{}, Body: openapi.Body{Type: triedRulesBody{}},
			Answer: openapi.Answer{Type: rulesPreviewBody{}, Description: "What would be left out or changed"}, Problems: missing,
		},
		{
			Route: "GET " + path + "/versions", Handle: s.versions, ID: "listIngestRulesVersions",
			Summary: "The last 100 versions of a project's rules, the newest first: who set them, when and why",
			Query:   httpapi.Page{}, Answer: openapi.Answer{Type: httpapi.List[ruleVersionBody]{}, Description: "A page of versions"}, Problems: missing,
		},
		{
			Route: "GET " + path + "/versions/{version}", Handle: s.version, ID: "getIngestRulesVersion", Summary: "A version of a project's rules",
			Query: struct{}{}, Answer: openapi.Answer{Type: rulesBody{}, Description: "The version"}, Problems: missing,
		},
		{
			Route: "POST " + path + "/versions/{version}/restore", Handle: written(s.restore), ID: "restoreIngestRules",
			Summary: "Set the rules of a project as they were in an earlier version. That makes a new version",
			Headers: repeatableHeaders{}, Query: struct{}{}, Body: openapi.Body{Type: ruleChangeBody{}},
			Answer: openapi.Answer{Type: rulesBody{}, Description: "The newest version"}, Problems: changed,
		},
	}
}

type triedRulesBody struct {
	Rules string `json:"rules" maxLength:"16384" description:"One a line, at most 50: drop CONDITION; sample N% by FIELD if CONDITION; redact PATTERNS in FIELDS if CONDITION; set level LEVEL if CONDITION. A condition is a query as of GET /v1/logs. At the end of a line: after the charge. Lines that begin with # are comments"`
}

type ruleChangeBody struct {
	Note      string `json:"note,omitempty" maxLength:"200" description:"Why, on one line"`
	IfVersion *int64 `json:"if_version,omitempty" minimum:"0" description:"Refuse with version_conflict unless the rules are at this version"`
}

type setRulesBody struct {
	triedRulesBody
	ruleChangeBody
}

type ruleVersionBody struct {
	Version   int64      `json:"version" description:"0: nobody has set any"`
	SetAt     *time.Time `json:"set_at" description:"null: nobody has set any"`
	Actor     *string    `json:"actor" description:"Id of the member or API key that set them"`
	ActorName *string    `json:"actor_name" description:"Of the member, where it was known; else null"`
	Note      *string    `json:"note"`
	Restored  *int64     `json:"restored" description:"The version whose rules they are, if they were restored"`
}

type rulesBody struct {
	ruleVersionBody
	Rules string `json:"rules"`
}

func newRuleVersionBody(v ingest.RuleVersion) ruleVersionBody {
	body := ruleVersionBody{Version: v.Version, Actor: textOrNull(v.By), ActorName: textOrNull(v.ByName), Note: textOrNull(v.Note)}
	if v.Version > 0 {
		body.SetAt = &v.At
	}
	if v.Restored > 0 {
		body.Restored = &v.Restored
	}
	return body
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// writeRules answers with rules, or with what is wrong.
func writeRules(w http.ResponseWriter, r *http.Request, v ingest.RuleVersion, err error) error {
	if err != nil {
		return RulesProblem(err, chi.URLParam(r, "project"), chi.URLParam(r, "version"))
	}
	httpapi.WriteJSON(w, http.StatusOK, rulesBody{newRuleVersionBody(v), v.Text})
	return nil
}

func (s *Rules) newest(w http.ResponseWriter, r *http.Request) error {
	v, err := s.Service.Newest(r.Context(), identity.FromContext(r.Context()), chi.URLParam(r, "project"))
	return writeRules(w, r, v, err)
}

// ParseRulesVersion reads the number of a version of rules.
func ParseRulesVersion(text string) (int64, error) {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 1 {
		return 0, RulesProblem(postgres.ErrNoRules, "", text)
	}
	return version, nil
}

func (s *Rules) version(w http.ResponseWriter, r *http.Request) error {
	version, err := ParseRulesVersion(chi.URLParam(r, "version"))
	if err != nil {
		return err
	}
	v, err := s.Service.Version(r.Context(), identity.FromContext(r.Context()), chi.URLParam(r, "project"), version)
	return writeRules(w, r, v, err)
}

func (s *Rules) versions(w http.ResponseWriter, r *http.Request) error {
	page, err := httpapi.ParsePage(r)
	if err != nil {
		return err
	}
	before := int64(0)
	if page.Cursor != "" {
		if err := httpapi.DecodeCursor(r, page.Cursor, &before); err != nil {
			return err
		}
	}
	project := chi.URLParam(r, "project")
	found, err := s.Service.Versions(r.Context(), identity.FromContext(r.Context()), project, before, page.Limit+1)
	if err != nil {
		return RulesProblem(err, project, "")
	}
	httpapi.WriteList(w, r, found, page.Limit, newRuleVersionBody, func(last ingest.RuleVersion) int64 { return last.Version })
	return nil
}

func (s *Rules) set(w http.ResponseWriter, r *http.Request) error {
	var body setRulesBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	return s.change(w, r, rules.Wish{Text: body.Rules, Note: body.Note, IfVersion: body.IfVersion})
}

func (s *Rules) restore(w http.ResponseWriter, r *http.Request) error {
	var body ruleChangeBody
	version, err := ParseRulesVersion(chi.URLParam(r, "version"))
	if err == nil {
		err = httpapi.ReadJSON(w, r, &body)
	}
	if err != nil {
		return err
	}
	return s.change(w, r, rules.Wish{Restore: version, Note: body.Note, IfVersion: body.IfVersion})
}

func (s *Rules) change(w http.ResponseWriter, r *http.Request, wish rules.Wish) error {
	wish.Project = chi.URLParam(r, "project")
	v, err := s.Service.Set(r.Context(), identity.FromContext(r.Context()), RulesOrigin(r, s.Guard), wish)
	return writeRules(w, r, v, err)
}

// RulesOrigin is where a change of rules comes from.
func RulesOrigin(r *http.Request, guard *identity.Guard) rules.Origin {
	return rules.Origin{Request: httpapi.RequestID(r.Context()), Address: httpapi.AddressText(guard.ClientAddress(r)), Client: r.UserAgent()}
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
		body.Examples = append(body.Examples, ruleExampleBody{id, e.Before, textOrNull(e.After), e.Lines})
	}
	return body
}

func (s *Rules) preview(w http.ResponseWriter, r *http.Request) error {
	var body triedRulesBody
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	project := chi.URLParam(r, "project")
	made, err := s.Service.Preview(r.Context(), identity.FromContext(r.Context()), project, body.Rules)
	if err != nil {
		return RulesProblem(err, project, "")
	}
	httpapi.WriteJSON(w, http.StatusOK, newRulesPreviewBody(made))
	return nil
}

// RulesProblem is the answer to an error of a rules.Service.
func RulesProblem(err error, project, version string) error {
	var invalid ingest.Invalid
	var conflict rules.Conflict
	switch {
	case errors.As(err, &invalid):
		return httpapi.Invalid("/"+invalid.Field, httpapi.CodeInvalidRequest, invalid.Detail, invalid.Fix)
	case errors.As(err, &conflict):
		return httpapi.NewProblem(http.StatusConflict, "version_conflict",
			conflict.Error()+" Read them, and send the request again with the new version if it still makes sense.").With("version", conflict.Now.Version)
	case errors.Is(err, rules.ErrNoProject):
		return httpapi.NotFound("project", project)
	case errors.Is(err, postgres.ErrNoRules):
		return httpapi.NotFound("version of rules, or it is no longer kept:", version)
	case errors.Is(err, rules.ErrMayNot):
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"Rules are changed by an API key whose access is \"full\", and in the console by "+sharers()+".")
	}
	return err
}
