import { crc32 } from 'node:zlib';

/** A cell that is no text: its type (none for a number) and what stands in it, as XML. */
export interface RawCell {
  readonly type?: string;
  readonly xml: string;
}

interface WorkbookParts {
  /** XML behind the cells, such as merged ones. */
  readonly behind?: string;
  /** Attributes of the rows from the second on. */
  readonly rowAttributes?: string;
  /** The sheets as the workbook lists them; every one of them is the same. */
  readonly sheets?: string;
}

/** A workbook of one sheet with its texts in the cells, as a spreadsheet writes it. */
export function workbook(rows: readonly (readonly (string | RawCell)[])[], parts: WorkbookParts = {}): Buffer {
  const { behind = '', rowAttributes = '', sheets = '<sheet name="rules" sheetId="1" r:id="rId1"/>' } = parts;
  const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const cells = rows.map((row, at) => {
    const texts = row.map((text, column) => {
      const place = `${String.fromCharCode(65 + column)}${at + 1}`;
      if (typeof text !== 'string') {
        return `<c r="${place}"${text.type === undefined ? '' : ` t="${text.type}"`}>${text.xml}</c>`;
      }
      return `<c r="${place}" t="inlineStr"><is><t>${escaped(text)}</t></is></c>`;
    });
    return `<row r="${at + 1}"${at === 0 ? '' : rowAttributes}>${texts.join('')}</row>`;
  });
  const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
  const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
  const packaged = 'http://schemas.openxmlformats.org/package/2006';
  return storedZip({
    '[Content_Types].xml': `<Types xmlns="${packaged}/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>`,
    '_rels/.rels': `<Relationships xmlns="${packaged}/relationships"><Relationship Id="rId1" Type="${office}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
    'xl/workbook.xml': `<workbook xmlns="${main}" xmlns:r="${office}"><sheets>${sheets}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `<Relationships xmlns="${packaged}/relationships"><Relationship Id="rId1" Type="${office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
    'xl/worksheets/sheet1.xml': `<worksheet xmlns="${main}"><sheetData>${cells.join('')}</sheetData>${behind}</worksheet>`,
  });
}

/** An archive whose parts are stored as they are (APPNOTE 4.3), which is all that a workbook needs. */
function storedZip(parts: Readonly<Record<string, string>>): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const [name, text] of Object.entries(parts)) {
    const path = Buffer.from(name);
    const data = Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>${text}`);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt32LE(crc32(data), 10);
    fields.writeUInt32LE(data.length, 14);
    fields.writeUInt32LE(data.length, 18);
    fields.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from('PK\u0003\u0004', 'latin1'), fields, path, data]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    central.push(Buffer.concat([Buffer.from('PK\u0001\u0002', 'latin1'), Buffer.from([20, 0]), fields, tail, path]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(locals.length, 4);
  end.writeUInt16LE(locals.length, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...locals, directory, Buffer.from('PK\u0005\u0006', 'latin1'), end]);
}
