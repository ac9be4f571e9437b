import { testFolder } from '../folder.ts';

testFolder(import.meta.dirname);
