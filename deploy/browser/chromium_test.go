//go:build browser

package browser

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	_ "embed"
	"encoding/base64"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/weirlog/weir/shared/testenv"
)

// findChromium returns the program of WEIR_CHROMIUM, or the first on the PATH.
func findChromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	if given := os.Getenv("WEIR_CHROMIUM"); given != "" {
		names = []string{given}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("no browser: none of %v is a program here. Install one (Debian: apt-get install chromium), or name one by WEIR_CHROMIUM", names)
	return ""
}

// startChromium starts a browser that trusts the certificate of origin,
// and ends it with the test. It trusts only that key: with any other
// fault of a certificate a page is not a secure context, and has
// neither passkeys nor a clipboard.
func startChromium(t *testing.T, origin string) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(findChromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("ignore-certificate-errors-spki-list", keyOf(t, origin)),
		chromedp.Flag("no-proxy-server", true), chromedp.Flag("lang", "en-US"),
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // root has no sandbox
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	browser, closeBrowser := chromedp.NewContext(allocator, chromedp.WithErrorf(log.New(t.Output(), "chromedp: ", 0).Printf))
	t.Cleanup(closeBrowser)
	testenv.Must(t, chromedp.Do(browser)) // starts it
	return browser
}

// keyOf returns the fingerprint of origin's key in Chromium's form.
func keyOf(t *testing.T, origin string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(origin, "https://"), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // to learn the key
	testenv.Must(t, err)
	defer conn.Close()
	sum := sha256.Sum256(conn.ConnectionState().PeerCertificates[0].RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// axe is axe-core, by Deque Systems, as its package on the npm
// registry has it; its licence is beside it.
//
//go:embed testdata/axe-core/axe.min.js
var axe string

// A violation is a fault found by axe-core.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

func (v violation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s", v.ID, v.Help)
	for _, node := range v.Nodes[:min(3, len(v.Nodes))] {
		fmt.Fprintf(&text, "\n\t%s\n\t%s", node.HTML, strings.ReplaceAll(node.Summary, "\n", "\n\t"))
	}
	return text.String()
}

func loadAxe(b *tab) {
	b.t.Helper()
	ask[bool](b, axe+"\n;true")
}

// runAxe checks the page against every rule for WCAG 2.2 A and AA and the
// best practices. The rule of target sizes is off in axe-core by default.
func runAxe(b *tab) []violation {
	b.t.Helper()
	return ask[[]violation](b, `axe.run(document, {resultTypes: ["violations"], rules: {"target-size": {enabled: true}}}).then((r) =>
		r.violations.map((v) => ({id: v.id, help: v.help, nodes: v.nodes.map((n) => ({html: n.html, failureSummary: n.failureSummary}))})))`)
}

// A tab is one person's tab, in its own browser profile. It records
// what no page may do.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu     sync.Mutex
	faults []string // dialogs, violations of the policy, failures of scripts
	asked  []string // requested addresses, and their Origin and Referer
}

// openTab opens a tab in a new profile, without traces of other persons.
func openTab(t *testing.T, chromium context.Context, origin string) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	b := &tab{t: t, ctx: ctx, origin: origin}
	testenv.Must(t, chromedp.Listen(ctx, b.notice))
	call(b, cdplog.Enable, cdp.Empty{})
	call(b, network.Enable, network.EnableParams{})
	call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	b.grantClipboard()
	b.size(1280, 900)
	return b
}

// notice records what no page may do.
func (b *tab) notice(event any) {
	switch e := event.(type) {
	case *page.EventJavascriptDialogOpening:
		b.blame("a dialog: " + e.Message)
		go func() { // else the page blocks
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *cdplog.EventEntryAdded:
		if e.Entry.Source != cdplog.EntrySourceNetwork || strings.Contains(e.Entry.URL, "/assets/") { // a page may answer 404
			b.blame(fmt.Sprintf("%s %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked = append(b.asked, fmt.Sprint(e.Request.URL, " ", e.Request.Headers["Referer"]))
	case *runtime.EventExceptionThrown:
		b.blame("an exception: " + e.ExceptionDetails.Text)
	}
}

func (b *tab) blame(fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fault)
}

// blameless fails the test if a page has done since the last call what
// none may do.
func (b *tab) blameless(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.t.Errorf("%s: %s", where, fault)
	}
	b.faults = nil
}

// call runs a command of the DevTools protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	result, err := chromedp.Call(b.ctx, command, params)
	testenv.Must(b.t, err)
	return result
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	testenv.Must(b.t, chromedp.Do(b.ctx, steps...))
}

// grantClipboard lets the test read what a page has copied.
func (b *tab) grantClipboard() {
	b.t.Helper()
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		_, err := chromedp.CallBrowser(b.ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted,
			Origin: b.origin, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
		})
		testenv.Must(b.t, err)
	}
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600,
	})
}

// colors sets the reader's preference for light or dark.
func (b *tab) colors(scheme string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// open goes to an address of the console, as from the address bar, and
// returns the answer's status.
func (b *tab) open(path string) int {
	b.t.Helper()
	answer, err := chromedp.RunResponse(b.ctx, chromedp.Navigate(b.origin+path))
	if err != nil {
		b.t.Fatalf("%s: %v", path, err)
	}
	return int(answer.Status)
}

// eval evaluates an expression in the page, and awaits promises. It
// fails between two pages.
func eval[T any](b *tab, expression string) (T, error) {
	return chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// ask is eval for a page that surely is there.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := eval[T](b, expression)
	testenv.Must(b.t, err)
	return value
}

// await waits until an expression about the page is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	deadline := time.Now().Add(testenv.Patience)
	for {
		holds, err := eval[bool](b, "document.readyState === 'complete' && !!("+expression+")")
		if err == nil && holds {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("not within %s: %s: %v\n%s", testenv.Patience, expression, err, b.describe())
		}
		time.Sleep(20 * time.Millisecond) // between two looks
	}
}

// awaitPage waits for the page whose heading is title.
func (b *tab) awaitPage(title string) {
	b.t.Helper()
	b.await(fmt.Sprintf("document.querySelector('h1')?.innerText === %q", title))
}

// awaitText waits until the page shows a text.
func (b *tab) awaitText(text string) {
	b.t.Helper()
	b.await(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

func (b *tab) shows(text string) bool {
	b.t.Helper()
	return ask[bool](b, fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// repeat opens a page by look until it shows a text.
func (b *tab) repeat(text string, look func()) {
	b.t.Helper()
	for deadline := time.Now().Add(testenv.Patience); ; time.Sleep(50 * time.Millisecond) {
		look()
		switch {
		case b.shows(text):
			return
		case time.Now().After(deadline):
			b.t.Fatalf("%q does not show within %s:\n%s", text, testenv.Patience, b.describe())
		}
	}
}

// describe names the tab's page, for failures.
func (b *tab) describe() string {
	text, err := eval[string](b, "location.pathname + '\\n' + document.title + '\\n' + document.body.innerText")
	if err != nil {
		return err.Error()
	}
	return text
}

// picture returns the whole page as a PNG.
func picture(b *tab) []byte {
	b.t.Helper()
	beyond := true
	return call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &beyond}).Data
}
