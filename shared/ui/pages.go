package ui

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

//go:embed templates/*.html
var shell embed.FS

// A Link leads to a page.
type Link struct {
	Text    string
	Href    string
	Current bool // leads to the current page
}

// Pages are the pages of one module. Safe for concurrent use.
type Pages struct {
	section   Section
	templates map[string]func() *template.Template // by the file's name without .html; bounded by the files
	named     func(ctx context.Context, organization string) string

	projectNamed func(organization, project string) string // "": the organization has no such project
}

// Named has the header name the reader's organization; "" or its id: not known.
func (p *Pages) Named(name func(ctx context.Context, organization string) string) *Pages {
	p.named = name
	return p
}

// Following has the header name the reader's organization and the project that
// a page is about: that of the query, unless the page names one.
func (p *Pages) Following(directory *identity.Directory) *Pages {
	p.named = func(_ context.Context, organization string) string { return directory.OrganizationName(organization) }
	p.projectNamed = func(organization, project string) string {
		if !directory.Owns(organization, project) {
			return ""
		}
		return directory.Name(project)
	}
	return p
}

// layout is what all pages share. It is never executed, so that it can be
// cloned.
var layout = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions()).ParseFS(shell, "templates/*.html"))
})

// NewPages names a module's templates, templates/*.html in files: each
// defines "content", whose dot is the View. A page is parsed when it is
// first shown: all of them take 10 MB. An invalid one panics then.
func NewPages(section Section, files fs.FS) *Pages {
	pages := &Pages{section: section, templates: map[string]func() *template.Template{}}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("BUG: there are no templates: %v", err))
	}
	for _, name := range names {
		pages.templates[strings.TrimSuffix(path.Base(name), ".html")] = sync.OnceValue(func() *template.Template {
			return template.Must(template.Must(layout().Clone()).ParseFS(files, name))
		})
	}
	pages.templates[problemPage] = sync.OnceValue(func() *template.Template { return template.Must(layout().Clone()) })
	return pages
}

// Mount adds the pages' assets to router and, for signed-in people
// whose role may read the section, a module's own pages.
func (p *Pages) Mount(router chi.Router, guard *identity.Guard, routes func(signedIn chi.Router)) {
	MountAssets(router)
	router.Group(func(signedIn chi.Router) {
		signedIn.Use(p.Protect, p.RequireSession(guard), p.permit)
		routes(signedIn)
	})
}

// A View is what a page shows.
type View struct {
	Title string
	Of    string // name of the project that it is about; empty: that of the query, if it has one
	Tabs  []Link // other pages of the section
	Flash *Flash // what just happened, shown once
	Bare  bool   // without navigation: before sign-in
	Wide  bool   // the whole width, and the title only for those who don't look; without navigation, a width to read
	Data  any    // the page's own
}

// Write answers r with a page. If the page can't be rendered, it panics
// before anything is sent.
func (p *Pages) Write(w http.ResponseWriter, r *http.Request, status int, page string, view View) {
	var rendered bytes.Buffer
	data := struct {
		View
		Navigation         []Link
		Organization, Role string
		Project, Reader    string
	}{View: view, Navigation: navigation(r, p.section)}
	if reader, known := identity.PrincipalOf(r.Context()); known {
		data.Role = reader.Role()
		if page != problemPage { // a refusal shows nothing of the organization, not even who reads
			data.Reader = reader.Name
		}
		if p.named != nil && page != problemPage {
			data.Organization = p.named(r.Context(), reader.Organization)
			data.Project = cmp.Or(view.Of, p.projectOf(r, reader))
		}
		if data.Organization == reader.Organization {
			data.Organization = "" // an id tells nothing
		}
	}
	if err := p.templates[page]().ExecuteTemplate(&rendered, "layout", data); err != nil {
		panic(fmt.Sprintf("BUG: cannot render page %q: %v", page, err))
	}
	writeHTML(w, status, rendered.Bytes())
}

// WritePart answers with the content of a page alone: a part of another module's page.
func (p *Pages) WritePart(w http.ResponseWriter, page string, data any) {
	var rendered bytes.Buffer
	if err := p.templates[page]().ExecuteTemplate(&rendered, "content", View{Data: data}); err != nil {
		panic(fmt.Sprintf("BUG: cannot render part %q: %v", page, err))
	}
	writeHTML(w, http.StatusOK, rendered.Bytes())
}

func writeHTML(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// projectOf is the name of the project of a request's query; empty: it has none.
func (p *Pages) projectOf(r *http.Request, reader identity.Principal) string {
	if project := r.URL.Query().Get("project"); project != "" && p.projectNamed != nil {
		return p.projectNamed(reader.Organization, project)
	}
	return ""
}

// A Section is an entry of the console's navigation; each page belongs to one.
type Section string

// The sections.
const (
	Overview Section = "Overview"
	Logs     Section = "Logs"
	Errors   Section = "Errors"
	Usage    Section = "Usage"
	Settings Section = "Settings"
)

// sections are all sections, in the order of the navigation.
var sections = []struct {
	section Section
	path    string
	read    identity.Read // "": the settings, whose pages each have a permission
	deed    string        // completes "may …"
}{
	{Overview, "/console/overview", identity.ReadLogs, "see the overview of a project"},
	{Logs, "/console/logs", identity.ReadLogs, "read the logs"},
	{Errors, "/console/errors", identity.ReadErrors, "read the errors"},
	{Usage, "/console/usage", identity.ReadUsage, "see the usage"},
	{Settings, "/console/settings", "", ""},
}

// navigation returns links to the sections that the reader may see;
// current is the reader's. Those of a project stay with that of the page.
func navigation(r *http.Request, current Section) (links []Link) {
	reader, known := identity.PrincipalOf(r.Context())
	project := r.URL.Query().Get("project")
	for _, s := range sections {
		if s.read != "" && known && !reader.MayRead(s.read) {
			continue
		}
		link := Link{string(s.section), s.path, current == s.section}
		if project != "" && (s.read == identity.ReadLogs || s.read == identity.ReadErrors) {
			link.Href += "?project=" + url.QueryEscape(project)
		}
		links = append(links, link)
	}
	return links
}

// Home returns a member's first page: the first section that the role may see.
func Home(member identity.Principal) string {
	for _, s := range sections {
		if s.read == "" || member.MayRead(s.read) {
			return s.path
		}
	}
	panic("BUG: there is no section for everybody")
}

// permit refuses members whose role may not read the section, and names
// the roles to ask.
func (p *Pages) permit(next http.Handler) http.Handler {
	return p.Handle(func(w http.ResponseWriter, r *http.Request) error {
		reader := identity.FromContext(r.Context())
		for _, s := range sections {
			if s.section == p.section && s.read != "" && !reader.MayRead(s.read) {
				return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
					"Your role here is "+reader.Role()+", which may not "+s.deed+". Ask one of the "+Roles(identity.RolesThatRead(s.read), "or")+".")
			}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// policy allows only the console's own stylesheet, scripts, images and
// forms: no inline or foreign script, no frame. So a client's text that
// escaped the templates could not act.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Protect sets the headers that protect pages, and refuses changes that a
// browser reports as coming from another site (cross-site request
// forgery). Every route of the console passes through it, the sign-in too.
func (p *Pages) Protect(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(p.Handle(func(http.ResponseWriter, *http.Request) error {
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"Another site sent this request, so nothing was done. Open the page in the console and try again there.")
	}))
	return withHeaders(protection.Handler(next))
}

// RequireSession passes signed-in people; others get a page with
// the reason, or the sign-in.
func (p *Pages) RequireSession(guard *identity.Guard) func(http.Handler) http.Handler {
	return guard.RequireSession(p.refuse)
}

// RequireReady passes all requests once the guard can judge, and else
// shows a page with the reason.
func (p *Pages) RequireReady(guard *identity.Guard) func(http.Handler) http.Handler {
	return guard.RequireReady(p.refuse)
}

// refreshSeconds is after how many seconds a browser reloads a page of
// a starting process.
const refreshSeconds = "3"

// refuse answers requests that a guard refuses. The page of a starting
// service reloads itself.
func (p *Pages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var problem *httpapi.Problem
	if errors.As(err, &problem) && problem.Code == httpapi.CodeUnavailable && r.Method == http.MethodGet {
		w.Header().Set("Refresh", refreshSeconds)
	}
	p.writeError(w, r, err)
}

func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Frame-Options", "DENY") // for browsers without frame-ancestors
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		next.ServeHTTP(w, r)
	})
}

const problemPage = "problem"

// Handle turns a function into a handler that shows its error as a page:
// an httpapi.Problem with its text, anything else without details.
func (p *Pages) Handle(handle func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			httpapi.CutBegun(w, r, err)
			p.writeError(w, r, err)
		}
	}
}

func (p *Pages) writeError(w http.ResponseWriter, r *http.Request, err error) {
	problem := httpapi.AsProblem(r, err)
	for name, values := range problem.Header {
		w.Header()[name] = values
	}
	p.Write(w, r, problem.Status, problemPage, View{
		Title: problemTitle(problem),
		Data: struct {
			Detail    string
			RequestID string // empty if a report would not help the reader
		}{problem.Detail, reportID(r, problem.Status)},
	})
}

func problemTitle(problem *httpapi.Problem) string {
	if problem.Code == httpapi.CodeUnavailable {
		return "Not available for a moment"
	}
	switch problem.Status {
	case http.StatusNotFound:
		return "There is nothing here"
	case http.StatusForbidden:
		return "You may not do this"
	case http.StatusTooManyRequests:
		return "Too many requests"
	}
	if problem.Status >= http.StatusInternalServerError {
		return "Something went wrong"
	}
	return "This did not work"
}

func reportID(r *http.Request, status int) string {
	if status < http.StatusInternalServerError {
		return ""
	}
	return httpapi.RequestID(r.Context())
}

//go:embed assets
var assetFiles embed.FS

const assetsPath = "/console/assets/"

// An asset is a file of pages. Its address changes with its content, so
// that browsers may keep it forever.
type asset struct {
	path        string
	contentType string
	content     []byte
}

// assets are all assets, by name.
var assets = readAssets()

// contentTypes are those of assets, by file extension.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func readAssets() map[string]asset {
	files, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	read := map[string]asset{}
	for _, file := range files {
		read[file.Name()] = readAsset(file.Name())
	}
	return read
}

func readAsset(name string) asset {
	content, err := assetFiles.ReadFile("assets/" + name)
	contentType := contentTypes[path.Ext(name)]
	if err != nil || contentType == "" {
		panic(fmt.Sprintf("BUG: cannot serve the asset %q: %v", name, err))
	}
	sum := sha256.Sum256(content)
	return asset{path: assetsPath + hex.EncodeToString(sum[:8]) + "/" + name, contentType: contentType, content: content}
}

// assetPath returns the address of a named asset. A missing one is a bug.
func assetPath(name string) (string, error) {
	found, ok := assets[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return found.path, nil
}

// MountAssets serves the files of every page. Every module mounts it:
// all give the same answers.
func MountAssets(router chi.Router) {
	router.With(httpapi.PublicFile).Get(assetsPath+"{version}/{name}", httpapi.Handle(serveAsset))
}

// serveAsset serves an asset for any version: during an upgrade a page
// may ask for one that this process lacks. Only its own may be cached.
func serveAsset(w http.ResponseWriter, r *http.Request) error {
	found, ok := assets[chi.URLParam(r, "name")]
	if !ok {
		return httpapi.NotFound("asset", r.URL.Path)
	}
	caching := "no-cache"
	if r.URL.Path == found.path {
		caching = fmt.Sprintf("public, max-age=%d, immutable", 365*24*60*60)
	}
	w.Header().Set("Content-Type", found.contentType)
	w.Header().Set("Cache-Control", caching)
	_, _ = w.Write(found.content)
	return nil
}
