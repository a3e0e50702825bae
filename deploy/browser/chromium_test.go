//go:build browser

package browser

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"log"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
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
	must(t, chromedp.Do(browser)) // starts it
	return browser
}

// keyOf returns the fingerprint of origin's key in Chromium's form.
func keyOf(t *testing.T, origin string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(origin, "https://"), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // to learn the key
	must(t, err)
	defer conn.Close()
	sum := sha256.Sum256(conn.ConnectionState().PeerCertificates[0].RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}
