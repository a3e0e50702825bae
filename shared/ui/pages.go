package ui

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/go-chi/chi/v5"

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
	templates map[string]*template.Template // by the file's name without .html; bounded by the files
}

// NewPages reads a module's templates, templates/*.html in files: each defines
// "content", whose dot is the View. It panics for an invalid template.
func NewPages(section Section, files fs.FS) *Pages {
	base := template.Must(template.New("").Funcs(functions()).ParseFS(shell, "templates/*.html"))
	pages := &Pages{section: section, templates: map[string]*template.Template{}}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("BUG: there are no templates: %v", err))
	}
	for _, name := range names {
		page := template.Must(template.Must(base.Clone()).ParseFS(files, name))
		pages.templates[strings.TrimSuffix(path.Base(name), ".html")] = page
	}
	pages.templates[problemPage] = base
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
	Tabs  []Link // other pages of the section
	Flash *Flash // what just happened, shown once
	Bare  bool   // without navigation: before sign-in
	Data  any    // the page's own
}

// Write answers r with a page. If the page can't be rendered, it panics
// before anything is sent.
func (p *Pages) Write(w http.ResponseWriter, r *http.Request, status int, page string, view View) {
	var rendered bytes.Buffer
	data := struct {
		View
		Navigation []Link
	}{view, navigation(r, p.section)}
	if err := p.templates[page].ExecuteTemplate(&rendered, "layout", data); err != nil {
		panic(fmt.Sprintf("BUG: cannot render page %q: %v", page, err))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(rendered.Bytes())
}
