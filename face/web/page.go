package web

import (
	"embed"
	"strings"

	"strandline/internal/packed"
)

// assets is the page, built from ui/.
//
//go:embed assets/*.gz
var assets embed.FS

// asset is a file of the page, which is known to be there.
func asset(name string) string {
	body, err := assets.ReadFile("assets/" + name + ".gz")
	if err != nil {
		panic(err)
	}
	return string(packed.Own(body))
}

// document is a page for where there is no server: engine names what answers it,
// policy is what it may load, more stands in its head before its own script.
func document(page, engine, policy, more string) string {
	const root, head = `<html lang="en">`, `<meta charset="utf-8">`
	out := strings.Replace(page, root, `<html lang="en" data-engine="`+engine+`">`, 1)
	return strings.Replace(out, head, head+"\n"+`<meta http-equiv="Content-Security-Policy" content="`+policy+`">`+more, 1)
}

// sitePolicy lets the page load the files beside it and start the engine, which
// is a worker under the same policy since it comes from a blob.
const sitePolicy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; style-src 'self'; img-src 'self' blob: data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'"

// Site is all pages as files of a static site, by
// name. It needs the engine beside it: worker.js and strandline.wasm.deflate.
func Site() map[string]string {
	out := map[string]string{}
	for _, page := range []string{"index.html", "recording.html", "watch.html", "plan.html"} {
		out[page] = document(asset(page), "worker", sitePolicy, "\n"+`<script defer src="site.js"></script>`)
	}
	for _, name := range []string{"site.js", "app.js", "app.css", "recording.js", "recording.css", "watch.js", "watch.css", "plan.js", "plan.css"} {
		out[name] = asset(name)
	}
	return out
}
