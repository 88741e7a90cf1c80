package web

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"

	"strandline/face/api/page"
	"strandline/internal/test/live"
)

// saveExample saves the page of the example, which takes a second.
var saveExample = sync.OnceValues(func() (string, error) {
	var out bytes.Buffer
	e := exampleEngine()
	if err := e.Load(context.Background()); err != nil {
		return "", err
	}
	err := Save(context.Background(), &out, e)
	return out.String(), err
})

// saved is the page of the example, and what the parts in it unpack to.
func saved(t *testing.T) (page string, index map[string][3]int, parts map[int][]byte) {
	t.Helper()
	page, err := saveExample()
	if err != nil {
		t.Fatal(err)
	}
	parts = map[int][]byte{}
	for _, m := range regexp.MustCompile(`<script type="text/plain" id="saved-(\w+)">([^<]*)</script>`).FindAllStringSubmatch(page, -1) {
		packed, err := base64.StdEncoding.DecodeString(m[2])
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
		if err != nil {
			t.Fatal(err)
		}
		var i int
		if _, err := fmt.Sscan(m[1], &i); err == nil {
			parts[i] = plain
		} else if err := json.Unmarshal(plain, &index); err != nil {
			t.Fatal(err)
		}
	}
	return page, index, parts
}

// TestSaveHoldsWhatItSays asks for all that the page will look for according
// to held.
func TestSaveHoldsWhatItSays(t *testing.T) {
	live.Sequential(t)
	_, index, parts := saved(t)
	answer := func(question string, into any) {
		t.Helper()
		place, ok := index[question]
		if !ok {
			t.Fatalf("there is no answer to %s", question)
		}
		if into == nil {
			return
		}
		body := parts[place[0]][place[1] : place[1]+place[2]]
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"session?", "findings?", "flame?d=0&f=0&kept=1"} {
		answer(name, nil)
	}
	var d page.Device
	answer("device?d=0&f=0", &d)
	if len(d.Groupings) < 5 || d.Peak.Event <= 0 || len(d.Held.Stations) < stepsBack || !strings.Contains(d.Held.Text, "strandline view") {
		t.Errorf("held is %+v", d.Held)
	}
	for _, grouping := range d.Groupings {
		g := string(grouping)
		answer("bands?d=0&f=0&g="+g, nil)
		for _, k := range d.Held.Events {
			var at struct{ Event int }
			if answer(fmt.Sprintf("at?d=0&f=0&g=%s&k=%d", g, k), &at); at.Event != k {
				t.Fatalf("asked for event %d, the answer is of %d", k, at.Event)
			}
		}
		for _, k := range d.Held.Stations {
			answer(fmt.Sprintf("state?d=0&f=0&g=%s&k=%d", g, k), nil)
		}
		for level := d.Held.Levels["ev "+g]; level < 6; level++ {
			for i := 0; i*256<<level < d.Events; i++ {
				answer(fmt.Sprintf("tile?L=%d&d=0&f=0&g=%s&i=%d&kind=band&x=ev", level, g, i), nil)
			}
		}
	}
	for _, k := range d.Held.Stations {
		answer(fmt.Sprintf("flame?d=0&f=0&k=%d", k), nil)
		answer(fmt.Sprintf("state?d=0&f=0&k=%d", k), nil)
		answer(fmt.Sprintf("event?d=0&f=0&k=%d", k), nil)
	}
	for _, keys := range d.Held.Alone {
		answer(fmt.Sprintf("tile?L=%d&d=0&f=0&g=line&i=0&kind=band&solo=%s&x=ev", d.Held.Levels["alone"], strings.ReplaceAll(keys, ",", "%2C")), nil)
	}
}

// TestSaveLoadsNothing checks for one file, whose policy names its script and style.
func TestSaveLoadsNothing(t *testing.T) {
	live.Sequential(t)
	page, _, _ := saved(t)
	if found := regexp.MustCompile(`<(link|script|img)[^>]* (src|href)="?[^d"]`).FindString(page); found != "" {
		t.Errorf("the page loads %s", found)
	}
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil {
		t.Fatal("there is no policy")
	}
	for _, tag := range []string{"script", "style"} {
		text := regexp.MustCompile(`(?s)<` + tag + `>(.*?)</` + tag + `>`).FindStringSubmatch(page)
		if text == nil || !strings.Contains(policy[1], tag+"-src "+hashOf(text[1])) {
			t.Errorf("the policy %s does not name the %s", policy[1], tag)
		}
	}
	if strings.Contains(policy[1], "connect-src") || !strings.HasPrefix(policy[1], "default-src 'none'") {
		t.Errorf("the policy is %s", policy[1])
	}
}

func TestSaveStops(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := Save(ctx, io.Discard, loadedEngine(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestSiteNamesItsEngine(t *testing.T) {
	site := Site()
	for _, want := range []string{`data-engine="worker"`, "worker-src blob:", "connect-src 'self'", `src="app.js"`} {
		if !strings.Contains(site["index.html"], want) {
			t.Errorf("index.html lacks %s", want)
		}
	}
}
