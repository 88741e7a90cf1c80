package load

import (
	"encoding/base64"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
)

// A painter makes images. It keeps one, and the buffers of its encoder.
type painter struct {
	image *image.RGBA
	png   png.Encoder
	held  *png.EncoderBuffer
}

// Get and Put keep the buffer of the encoder.
func (p *painter) Get() *png.EncoderBuffer  { return p.held }
func (p *painter) Put(b *png.EncoderBuffer) { p.held = b }

// tile is the edge of the squares of a picture, in pixels: large enough that a picture
// can be made and compressed in little time, and small enough that no two are alike.
const tile = 16

// paint writes a picture of random squares as a data URL.
func (p *painter) paint(w io.Writer, r *rand.Rand, width, height int, asJPEG bool) error {
	if p.image == nil {
		p.image = image.NewRGBA(image.Rect(0, 0, width, height))
		p.png = png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: p}
	}
	for y := 0; y < height; y += tile {
		row := p.image.Pix[y*p.image.Stride : (y+1)*p.image.Stride]
		for x := 0; x < width; x += tile {
			c := r.Uint32()
			for i := x; i < min(x+tile, width); i++ {
				row[4*i], row[4*i+1], row[4*i+2], row[4*i+3] = byte(c), byte(c>>8), byte(c>>16), 0xff
			}
		}
		for k := 1; k < tile && y+k < height; k++ {
			copy(p.image.Pix[(y+k)*p.image.Stride:], row)
		}
	}
	kind := "png"
	if asJPEG {
		kind = "jpeg"
	}
	if _, err := io.WriteString(w, "data:image/"+kind+";base64,"); err != nil {
		return err
	}
	text := base64.NewEncoder(base64.StdEncoding, w)
	var err error
	if asJPEG {
		err = jpeg.Encode(text, p.image, &jpeg.Options{Quality: 85})
	} else {
		err = p.png.Encode(text, p.image)
	}
	if err != nil {
		return err
	}
	return text.Close()
}
